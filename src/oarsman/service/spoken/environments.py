"""What is said about environments, in Chinese. What pip said is kept as it is."""

SENTENCES = {
    "environment {name:word} is gone": "环境 {name} 已不存在",
    "there is no environment {name:word}": "没有环境 {name}",
    "there is no environment {name:word} in this namespace": "此命名空间中没有环境 {name}",
    "there is no environment {name:word} in namespace {space:word}": "命名空间 {space} 中没有环境 {name}",
    "environment {name:word} could not be built: {why:say}": "环境 {name} 构建失败：{why}",
    "environment {name:word} could not be built": "环境 {name} 构建失败",
    "environment {name:word} is being built": "环境 {name} 正在构建",
    "environment {name:word} is still being built": "环境 {name} 仍在构建",
    "environment {name:word} is not built yet": "环境 {name} 还没有构建",
    "ConfigMap {map:word} does not say what environment {name:word} contains": (
        "ConfigMap {map} 没有说明环境 {name} 包含什么"
    ),
    "`oarsman env log {name:word}` tells more": "详情见 `oarsman env log {name}`",
    "`oarsman env list` shows those there are": "`oarsman env list` 列出已有的环境",
    "there are none yet; `oarsman env build` makes one": "还没有环境；`oarsman env build` 可以创建",
    "there are: {names}": "已有：{names}",
    "the build was interrupted; build it again": "构建被中断；请重新构建",
    "its folder is gone from {folder}; build it again": "它的目录已从 {folder} 消失；请重新构建",
    "its build was taken away before it ended; build it again": "它的构建在结束之前被删除；请重新构建",
    "the build ended with code {code:n}": "构建以退出码 {code} 结束",
    "the build ended with code {code:n} ({reason:word})": "构建以退出码 {code} 结束（{reason}）",
    "the build failed": "构建失败",
    "the build in {folder} does not end": "{folder} 中的构建没有结束",
    "the failed build {name:word} does not go away": "失败的构建 {name} 没有消失",
    "there is no claim {claim:word} in this namespace": "此命名空间中没有 PVC {claim}",
    "there is no claim {claim:word} in this namespace: {hint:say}": "此命名空间中没有 PVC {claim}：{hint}",
    "make one that several nodes can mount; docs/guide/kubernetes.md has the lines for kubectl apply": (
        "请创建一个可由多个节点挂载的 PVC；docs/guide/kubernetes.md 中有可供 kubectl apply 的内容"
    ),
    "environment {name:word} is used by {count:n} of the jobs that have not ended": (
        "环境 {name} 正被 {count} 个未结束的作业使用"
    ),
    "environment {name:word} is used by {users}": "环境 {name} 正被 {users} 使用",
    "stop them, or wait for their end": "请停止它们，或等它们结束",
    "stop it first, or wait until it has ended": "请先停止它，或等它结束",
    "{name:value} is no name for an environment": "{name} 不能作为环境名称",
    "small letters, digits and dashes, at most 63": "小写字母、数字和短横线，最多 63 个字符",
    "there is no Python {wanted:word} on this machine": "本机没有 Python {wanted}",
    "there is {here}; put another on PATH": "已有 {here}；请把其他版本放到 PATH 中",
    "on Kubernetes an environment needs the image its jobs run in": "在 Kubernetes 上，环境需要指明作业运行所用的镜像",
    "it is built by that image's Python: say --image IMAGE": "它由该镜像的 Python 构建：请给出 --image IMAGE",
    "more than {size:n} KiB of requirements": "依赖超过 {size} KiB",
    "{mpi:value} is not known here": "这里不认识 {mpi}",
}
