"""Why something that a person asked for is not done, in Chinese."""

SENTENCES = {
    "there is no job {key:word}": "没有作业 {key}",
    "there is no job {name:word} in namespace {space:word}": "命名空间 {space} 中没有作业 {name}",
    "there is no sweep {key:word}": "没有参数扫描 {key}",
    "there is a job {key:word} already": "已有作业 {key}",
    "there is a sweep {key:word} already": "已有参数扫描 {key}",
    "there is another sweep {key:word} already": "已有另一个参数扫描 {key}",
    "a job named {name:word} exists already in namespace {space:word}": "命名空间 {space} 中已有名为 {name} 的作业",
    "choose another name, or remove it first: {command}": "请换一个名称，或先删除它：{command}",
    "delete it first: {command}": "请先删除它：{command}",
    "delete it first, or give this one another name": "请先删除它，或换一个名称",
    "give this one another name": "请换一个名称",
    "give this one another name, or delete the other": "请换一个名称，或删除另一个",
    "choose a name": "请取一个名称",
    "there are too many copies of {name:word}": "{name} 的副本太多",
    "{key:word} has not ended; it is not replaced": "{key} 尚未结束，不能替换",
    "{key:word} has not ended; it cannot be run again": "{key} 尚未结束，不能重新运行",
    "stop it first: {command}": "请先停止它：{command}",
    "stop it first, or clone it": "请先停止它，或克隆它",
    "{key:word} has no workers to scale": "{key} 没有可以伸缩的 Worker",
    "{key:word} has ended; it cannot be {what:done}": "{key} 已结束，不能 {what}",
    "{key:word} has ended already": "{key} 已经结束",
    "{key:word} was changed by somebody else at the same time; try again": "{key} 同时被别人修改；请重试",
    "{name:word} may not {action:action} what belongs to {owner:word}": "{name} 不能 {action} 属于 {owner} 的内容",
    "{name:word} may not {action:action}": "{name} 不能 {action}",
    "the role is {role:word}; an admin can change it": "当前角色是 {role}；管理员可以更改",
    "{path} is not a folder of this machine": "{path} 不是本机的目录",
    "write a whole path": "请写完整路径",
    "the manifest has {count:n} jobs; send one at a time": "清单中有 {count} 个作业；请一次提交一个",
    "cut it at the lines that are only ---": "请在只有 --- 的行处分开",
    "send either a manifest or a document": "请提交清单或文档之一",
    "the jobs are not known yet": "作业列表还没有读到",
    "try again in a moment": "请稍后再试",
    "nobody tells of changes among the jobs any more": "不再能得知作业的变化",
    "following the jobs failed: {why}": "跟踪作业失败：{why}",
    "the supervisor does not answer": "后台管理进程没有应答",
    "the supervisor ended while starting": "后台管理进程在启动时结束",
    "the supervisor could not be started: {why}": "后台管理进程无法启动：{why}",
    "its log is {path}": "它的日志是 {path}",
    "the store cannot be written: {why}": "无法写入存储：{why}",
    "make room on the disk that holds {path}": "请在 {path} 所在的磁盘上腾出空间",
    # -- a cluster -------------------------------------------------------------------------------------------
    "the cluster refused it: {why}": "集群拒绝了：{why}",
    "this user may not do that: {why}": "此用户不能这样做：{why}",
    "`oarsman doctor --on kube` shows what this user may do": "`oarsman doctor --on kube` 列出此用户可以做什么",
    "the cluster does not know this user: {why}": "集群不认识此用户：{why}",
    "the cluster has no MPIJobs": "集群没有 MPIJob",
    "run `oarsman install --image IMAGE`": "请运行 `oarsman install --image IMAGE`",
    "there is no namespace {space:word} on this cluster": "此集群没有命名空间 {space}",
    "make it: {command}": "请创建它：{command}",
    "there is no such job: {why}": "没有这样的作业：{why}",
    "there is a job of this name already: {why}": "已有同名的作业：{why}",
    "the cluster lets this user see jobs in no namespace": "集群不允许此用户查看任何命名空间中的作业",
    "the launcher pod of {key:word} is gone, and its log with it": "{key} 的启动器 Pod 已不存在，日志也随之消失",
    "the launcher pod of {key:word} is gone, and its log with it; its status kept the last {count:n} lines": (
        "{key} 的启动器 Pod 已不存在，日志也随之消失；状态中保留了最后 {count} 行"
    ),
    "somebody, or a clean-up of the cluster, deleted the pod; logs that have to stay belong on a volume": (
        "有人或集群的清理任务删除了该 Pod；需要保留的日志应写到卷上"
    ),
    "the lines of {key:word} do not say which rank wrote them": "{key} 的日志行没有注明是哪个进程写的",
    "this user may not see the jobs of all namespaces: {why}": "此用户不能查看所有命名空间的作业：{why}",
    "name a namespace": "请指定命名空间",
    "the credentials are those of {source}": "凭据来自 {source}",
    "the server is {server:word}, from {source}": "服务器是 {server}，来自 {source}",
    'set the annotation {name:word}: "true" and run it again; `oarsman submit` and `oarsman run` do so by themselves': (
        '请设置注解 {name}: "true" 后重新运行；`oarsman submit` 和 `oarsman run` 会自动设置'
    ),
    "ask for the role `view` in yours; if you have it, the console must be told the namespace's name": (
        "请申请您命名空间的 `view` 角色；如果已有，则需要告诉控制台命名空间的名称"
    ),
    # -- the store, and pages of a log ----------------------------------------------------------------------
    "cannot open {path:word}: {why}": "无法打开 {path}：{why}",
    "the store was written by a newer Oarsman (schema {theirs:n}, this one knows {ours:n})": (
        "存储由更新版本的 Oarsman 写入（格式 {theirs}，此版本只认识 {ours}）"
    ),
    "upgrade oarsman, or point OARSMAN_STATE to another folder": "请升级 oarsman，或让 OARSMAN_STATE 指向另一个目录",
    "{path:word} is not a folder of this user alone": "{path} 不是只属于此用户的目录",
    "no place to keep jobs: {why:say}": "没有保存作业的地方：{why}",
    "point OARSMAN_STATE to a folder that you can write to": "请让 OARSMAN_STATE 指向一个可写的目录",
    "this user has no home folder": "此用户没有主目录",
    "remove it": "请删除它",
    "{text} is no place in this log": "{text} 不是此日志中的位置",
    "a page has 1 to {most:n} lines, not {given:n}": "一页有 1 到 {most} 行，不能是 {given}",
    "a page is after a place or before one, not both": "一页在某个位置之后或之前，不能两者都是",
    "lines come after a place or before one, not both": "行在某个位置之后或之前，不能两者都是",
    "begin anew, and hand places back as you got them": "请重新开始，并原样传回得到的位置",
    "the name of this folder is not valid UTF-8: {name}": "此目录的名称不是有效的 UTF-8：{name}",
    "go to another one": "请换一个目录",
    "one of {names:choice}": "可选 {names}",
    "there is no version {version:value}": "没有版本 {version}",
    "the patch leaves no metadata": "修改之后没有 metadata 了",
    "jobs cannot be sorted by {field:value}": "作业不能按 {field} 排序",
    "this cursor does not belong to this list": "此游标不属于这个列表",
    "hand back `next` of the page before, with the same `sort`": "请传回上一页的 `next`，并使用相同的 `sort`",
    "{count:n} workers are not between min_workers={least:n} and max_workers={most:n}": (
        "{count} 个 Worker 不在 min_workers={least} 和 max_workers={most} 之间"
    ),
    "a command is a list of words": "命令是一组词",
    "the job has no launcher": "作业没有启动器",
    # -- the form ----------------------------------------------------------------------------------------------
    "change it in the text": "请在文本中修改",
    "set it there or in the text": "请在那里或在文本中设置",
    "mend it in the text first": "请先在文本中改正",
    "{field:word} cannot be {value}": "{field} 不能是 {value}",
    "{field:word} must be at least {least:n}, not {given:n}": "{field} 至少为 {least}，不能是 {given}",
    "{field:word} must be a whole number of at least {least:n}, not {given}": (
        "{field} 必须是不小于 {least} 的整数，不能是 {given}"
    ),
    "{field:word} is a list of words": "{field} 是一组词",
    "{place:word} is not what it should be": "{place} 的内容不对",
    "{name:word} takes its value from elsewhere": "{name} 的值来自别处",
    "{key:word} has a place of its own": "{key} 有专门的位置",
    "the launch line is inside a shell command": "启动命令行在一条 shell 命令之内",
    "only a job that horovodrun starts with host discovery is elastic": (
        "只有由 horovodrun 以主机发现方式启动的作业才是弹性的"
    ),
    "two volumes cannot be at the same path": "两个卷不能在同一路径",
    "something else is already at {path}": "{path} 已有别的内容",
    "a volume is mounted at a whole path, not {path:value}": "卷要挂载到完整路径，不能是 {path}",
    "what is to be seen at {path}?": "{path} 处应是什么？",
    "a folder or the name of a claim": "目录或 PVC 的名称",
    "the job has no workers": "作业没有 Worker",
    "YAML has no way to write this": "YAML 无法写出这个值",
    "are there control characters in it?": "其中是否有控制字符？",
}
PIECES = {
    "done": {
        "scaled": "伸缩", "suspended": "挂起", "resumed": "恢复", "changed": "修改", "stopped": "停止",
        "{what:word}": "{what}",
    },
    "action": {
        "look around": "查看", "see": "查看", "create jobs": "创建作业", "change": "修改", "manage tokens": "管理令牌",
        "administer": "管理账户",
    },
}  # fmt: skip
