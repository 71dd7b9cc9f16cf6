"""The catalogue of Simplified Chinese: what the command says. Its help pages are in `chinese_help.py`."""

from __future__ import annotations

from collections.abc import Mapping

from oarsman.cli.chinese_help import HELP

_ERRORS = {
    "error:": "错误：",
    "field:": "字段：",
    "hint:": "提示：",
    " or ": " 或 ",
    "did you mean {names}?": "是不是想写 {names}？",
    "problems: {count}": "问题数：{count}",
    "{what} is missing": "缺少 {what}",
    "there is no option {name}": "没有 {name} 这个选项",
    "write it after the verb: oarsman VERB {name} ...": "请写在命令之后：oarsman 命令 {name} ...",
    "there is no verb '{name}'": "没有“{name}”这个命令",
    "{what} takes one of: {choices}": "{what} 只能是：{choices}",
    "{what} takes a whole number": "{what} 必须是整数",
    "{what} takes a whole number, {least} or more": "{what} 必须是不小于 {least} 的整数",
    "`{command} --help` shows how it is used": "用法见 `{command} --help`",
    "`oarsman --help` lists the verbs": "`oarsman --help` 列出全部命令",
    "this is a fault in oarsman; the traceback is in {path}": "这是 oarsman 的缺陷；调用栈已写入 {path}",
    "this is a fault in oarsman; --debug shows the traceback": "这是 oarsman 的缺陷；加 --debug 可看到调用栈",
    "a manifest is missing": "缺少作业清单",
    "oarsman run job.yaml, or oarsman run -n 4 -- python3 -m mpi4py train.py": (
        "oarsman run job.yaml，或 oarsman run -n 4 -- python3 -m mpi4py train.py"
    ),
    "-n was given but no program": "给了 -n，却没有给出程序",
    "`{purpose}` takes one manifest, or -n and a command": "`{purpose}` 接受一个清单，或者 -n 加一条命令",
    "{path} holds {count} jobs, and `{purpose}` takes one": "{path} 里有 {count} 个作业，而 `{purpose}` 只接受一个",
    "`oarsman submit` takes several": "`oarsman submit` 可以接受多个",
    "--env {value}: write NAME=VALUE, or the NAME of a variable that is set": (
        "--env {value}：请写 NAME=VALUE，或者一个已设置的变量名"
    ),
    "{option} needs -n: a manifest says this itself": "{option} 要与 -n 同用：有清单时由清单说明",
    "the current folder is gone": "当前目录已不存在",
    "change to a folder that exists": "请换到一个存在的目录",
    "--replace takes the place of a job that has ended; --name gives this one another name": (
        "--replace 取代已结束的同名作业；--name 给这个作业另取名称"
    ),
    "no completion for {shell}": "没有 {shell} 的补全",
    "say which jobs: names, or --all": "请指明作业：给出名称，或 --all",
    "`oarsman list` shows the jobs there are": "`oarsman list` 列出现有的作业",
    "there are no jobs yet": "还没有任何作业",
    "{source} is too large to be a manifest": "{source} 太大，不可能是作业清单",
    "cannot read {source}: {reason}": "无法读取 {source}：{reason}",
    "the manifest says namespace '{theirs}', --namespace says '{ours}'": (
        "清单写的命名空间是“{theirs}”，--namespace 写的是“{ours}”"
    ),
    "--launcher leaves out every rank: it goes with neither --rank nor --worker": (
        "--launcher 不含任何 rank，不能与 --rank 或 --worker 同用"
    ),
    "{name} has no rank {rank}": "{name} 没有 rank {rank}",
    "its ranks are 0 to {last}": "它的 rank 是 0 到 {last}",
    "its only rank is 0": "它只有 rank 0",
    "say once how many workers there shall be": "请给出一次 worker 的数量",
    "'{name}' is not the name of a job": "“{name}”不是作业名",
    "write name, namespace/name or mpijob/name": "请写 名称、命名空间/名称 或 mpijob/名称",
    "'{name}' is not in namespace '{namespace}'": "“{name}”不在命名空间“{namespace}”中",
    "leave out --namespace": "去掉 --namespace",
    "'{text}' is too long a time": "“{text}”时间太长",
    "'{text}' is not a duration": "“{text}”不是时长",
    "write 30s, 5m, 2h or 1m30s": "请写 30s、5m、2h 或 1m30s",
    "'{text}' is not a time": "“{text}”不是时间",
    "write 5m (ago) or 2026-01-31T08:00:00Z": "请写 5m（之前）或 2026-01-31T08:00:00Z",
    "cannot be understood: {error}": "无法理解：{error}",
}

_SAID = {
    "stopping {name} and cleaning up; once more leaves that to {keeper}": (
        "正在停止 {name} 并清理；再按一次则交给{keeper}处理"
    ),
    "{name} is left to {keeper}, which goes on stopping it": "{name} 已交给{keeper}，它会继续停止该作业",
    "{name} is suspended; `oarsman resume {name}` goes on": "{name} 已挂起；用 `oarsman resume {name}` 继续",
    "attempt {number}": "第 {number} 次尝试",
    "attempt {number}, since the one before ended: {why}": "第 {number} 次尝试；上一次结束的原因：{why}",
    "no operator is running, so nobody stops {name}; `oarsman delete {name}` removes it": (
        "没有 operator 在运行，无法停止 {name}；用 `oarsman delete {name}` 可将其删除"
    ),
    "{name} was stopped after {took}; its pods are going away": "{name} 运行 {took} 后已停止，其 Pod 正在退出",
    "{count} worker pods still run, as its cleanPodPolicy None says; `oarsman delete {name}` removes them": (
        "按照 cleanPodPolicy None，仍有 {count} 个 worker Pod 在运行；用 `oarsman delete {name}` 可将其删除"
    ),
    "{name} has not started: it is {state}": "{name} 尚未启动，状态是 {state}",
    "{name} is being deleted": "正在删除 {name}",
    "Before that it waited: {what}": "此前它在等待：{what}",
    "{name}: stopping": "{name}：正在停止",
    "{name}: running, no output yet": "{name}：正在运行，还没有输出",
    "{name}: waiting for room, place {position}: {reason}": "{name}：等待资源，排在第 {position} 位：{reason}",
    "{name}: starting hosts, {ready} of {total}": "{name}：正在启动主机，{ready}/{total}",
    "place {position} in the queue: {reason}": "队列第 {position} 位：{reason}",
    "{name} was deleted": "{name} 已被删除",
    "{name} deleted": "{name} 已删除",
    "{name} succeeded after {took}": "{name} 成功，用时 {took}",
    "{name} failed after {took}": "{name} 失败，用时 {took}",
    "{name} failed": "{name} 失败",
    "{name} was stopped after {took}; nothing of it is left": "{name} 运行 {took} 后已停止，没有留下任何进程",
    "{name} goes on": "{name} 继续运行",
    "{name} is being stopped": "正在停止 {name}",
    "{name} is being suspended": "正在挂起 {name}",
    "{name} is to have {workers} workers": "{name} 将有 {workers} 个 worker",
    "{name} is gone": "{name} 已不存在",
    "{name} is {state}": "{name} 的状态是 {state}",
    "{name} is not {goal} yet; the time is up": "时间到，{name} 仍未达到 {goal}",
    "{name} cannot become {goal}: it is {state}": "{name} 不可能再达到 {goal}：它已是 {state}",
    "Delete {count} jobs with their logs?": "删除 {count} 个作业及其日志？",
    "no jobs": "没有作业",
    "no supervisor is running": "后台管理进程没有运行",
    "the supervisor runs as process {pid}": "后台管理进程的进程号是 {pid}",
    "the supervisor has ended": "后台管理进程已结束",
    "no events": "没有事件",
    "nothing is running": "没有正在运行的作业",
    "not kept: {loss}": "未能保留：{loss}",
    "{source}: problems: {count}": "{source}：问题数：{count}",
    "{source}: valid ({jobs})": "{source}：有效（{jobs}）",
    "No job can run here before that.": "在此之前，这台机器无法运行任何作业。",
    "Jobs can run here.": "这台机器可以运行作业。",
    "No job can run on this cluster before that.": "在此之前，这个集群无法运行任何作业。",
    "Jobs can run on this cluster.": "这个集群可以运行作业。",
    "none found; `oarsman doctor` says what to install": "没有找到；`oarsman doctor` 说明该装什么",
}

_PAGE = {
    "NAME": "名称", "STATE": "状态", "WORKERS": "WORKER", "AGE": "时间", "DURATION": "用时", "REASON": "原因",
    "SLOTS": "槽位", "ENGINE": "引擎", "OWNER": "所有者", "ATTEMPT": "尝试", "MESSAGE": "说明", "KIND": "类别",
    "HOST": "主机", "ROLE": "角色", "PROCESSES": "进程", "MEMORY": "内存", "LIMIT": "上限", "GPUS": "GPU",
    "RANKS": "RANK", "TYPE": "类型", "STATUS": "真假", "SINCE": "持续", "STEP": "步骤", "TIME": "时刻",
    "TOOK": "耗时", "STARTED": "开始", "OUTCOME": "结果", "CAUSE": "起因", "WHAT": "项目", "FOUND": "发现",
    "Asked for": "要求", "Timeline": "时间线", "Hosts": "主机", "Events": "事件", "Name": "名称",
    "Namespace": "命名空间", "State": "状态", "Says": "说明", "Submitted": "提交", "Folder": "目录",
    "{source} is a program, not a manifest": "{source} 是一个程序，不是清单文件",
    "to run it in four ranks: oarsman run -n 4 -- {source}": "要用四个 rank 运行它：oarsman run -n 4 -- {source}",
    "Engine": "引擎", "Duration": "用时", "Next try": "下次尝试", "Labels": "标签", "Annotations": "注解",
    "Replicas": "副本", "Slots": "槽位", "Ranks": "Rank", "Command": "命令", "Image": "镜像",
    "Per worker": "每个 worker", "Restart": "重启", "Clean-up": "清理", "Deadline": "期限",
    "Kept after the end": "结束后保留", "Conditions": "状况", "Attempts": "各次尝试", "Launcher": "Launcher",
    "Workers": "Worker", "Launch line": "启动命令行", "Launch line as it would run": "实际运行的启动命令行",
    "Environment": "环境变量", "Would be made": "将会创建", "Cannot be honoured here": "此处无法满足",
    "What would help": "建议", "Cause": "失败原因", "cause:": "原因：", "last lines:": "最后几行：",
    "submitted": "已提交", "admitted": "已接纳", "hosts up": "主机就绪", "launched": "已启动",
    "first output": "首行输出", "ended": "已结束", "running": "运行中", "reached": "已达到", "rank": "rank",
    "host": "主机", "exit code": "退出码", "signal": "信号", "memory limit": "内存上限",
    " (default)": "（默认）", ", at most {n} times": "，最多 {n} 次",
    "{time} ({age} ago)": "{time}（{age} 前）",
    "{time} ({age} ago) by {owner}": "{time}（{age} 前），由 {owner} 提交",
    "1 launcher + {workers} workers = {total}": "1 个 launcher + {workers} 个 worker = {total}",
    "{hosts} hosts x {slots} = {total}": "{hosts} 台主机 x {slots} = {total}",
    "{active} active, {ready} ready, {succeeded} succeeded, {failed} failed": (
        "{active} 个活动，{ready} 个就绪，{succeeded} 个成功，{failed} 个失败"
    ),
}  # fmt: skip

CATALOGUE: Mapping[str, str] = {**_ERRORS, **_SAID, **_PAGE, **HELP}
