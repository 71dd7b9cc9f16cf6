"""What one machine and its preview say, in Chinese."""

SENTENCES = {
    "{field:word}: {message:known}": "{field}：{message}",
    "{ranks:word} ranks share {cpus:word} CPUs": "{ranks} 个进程共用 {cpus} 个 CPU",
    "image {image:word} is not pulled: the programs of this machine run": "不拉取镜像 {image}：运行的是本机的程序",
    "all ranks run as one host, workers are names only: {why:say}": (
        "所有进程都在同一台主机上运行，Worker 只是名称：{why}"
    ),
    "memory limits are not enforced: no control group can be made here": "内存上限不会强制执行：这里无法创建控制组",
    "the worker's own command is not run: a worker is reached without sshd here": (
        "不运行 Worker 自己的命令：这里不用 sshd 就能到达 Worker"
    ),
    "no MPI was found on this machine; `oarsman doctor` says what to install": (
        "本机没有找到 MPI；`oarsman doctor` 会说明该安装什么"
    ),
    "whether it fits is not known: {why:say}": "不知道资源是否足够：{why}",
    "the folder it was submitted from is gone: {folder}": "提交时所在的目录已不存在：{folder}",
    "its job agent died": "它的守护进程已终止",
    "its job agent was killed": "它的守护进程被杀死了",
    "it is still starting": "它还在启动",
    "the job agent died while starting": "守护进程在启动时终止",
    "the job agent does not answer ({why})": "守护进程没有应答（{why}）",
    "the job agent could not start: {why}": "守护进程无法启动：{why}",
    "the job agent could not {do:word}: {why}": "守护进程无法执行 {do}：{why}",
    "{key:word}: the job agent could not start: {why}": "{key}：守护进程无法启动：{why}",
    "no {mpi} was found on PATH. Install one ({own}, or your system's package), or name it with --mpi; "
    "'oarsman doctor' shows what is here": (
        "PATH 中没有找到 {mpi}。请安装一个（{own}，或系统的软件包），或用 --mpi 指定；'oarsman doctor' 会列出已有的"
    ),
    # -- what cannot be honoured here -----------------------------------------------------------------------
    "the launcher has no command. Images are not run on this machine, so there is no entry point to fall back on: "
    "add {field:word}": "启动器没有命令。本机不运行镜像，因此没有可用的入口命令：请添加 {field}",
    "only the MPI container runs on this machine; do it in the launch command": (
        "本机只运行 MPI 容器；请在启动命令里完成这件事"
    ),
    "only the MPI container runs on this machine; remove the others": "本机只运行 MPI 容器；请去掉其他容器",
    "{source:word} exists on Kubernetes only; give the value": "{source} 只在 Kubernetes 上存在；请直接写出值",
    "exists on Kubernetes only; give the variables under env": "只在 Kubernetes 上存在；请在 env 下写出变量",
    "{path} is not a folder on this machine": "{path} 不是本机的目录",
    "a volume of kind {kind:word} cannot be had on one machine; use emptyDir or hostPath": (
        "本机没有 {kind} 类型的卷；请使用 emptyDir 或 hostPath"
    ),
    "the mount point {path} does not exist on this machine; create it or choose another": (
        "挂载点 {path} 在本机上不存在；请创建它，或换一个"
    ),
    "{path} does not exist on this machine": "{path} 在本机上不存在",
    "this machine allows no private mounts ({why:say})": "本机不允许私有挂载（{why}）",
    # -- why hosts cannot be kept apart ------------------------------------------------------------------------
    "{platform:word} has no namespaces": "{platform} 没有命名空间",
    "switched off by OARSMAN_SEPARATION": "已由 OARSMAN_SEPARATION 关闭",
    "the trial itself failed": "试验本身失败了",
    "the 'ip' command is not installed (package iproute2)": "没有安装 ip 命令（软件包 iproute2）",
    "a new /proc cannot be mounted": "无法挂载新的 /proc",
    "ip refused: {line}": "ip 拒绝执行：{line}",
    # -- how slots, workers and ranks fit together -----------------------------------------------------
    "{slots:slots}; the command does not visibly start MPI, so how many ranks there are is its own affair": (
        "{slots}；看不出该命令会启动 MPI，有多少进程由它自己决定"
    ),
    "{slots:slots}; {launcher:word} is elastic: {least:n} to {most:n} ranks, as hosts come and go": (
        "{slots}；{launcher} 是弹性的：{least} 到 {most} 个进程，随主机增减"
    ),
    "{slots:slots}; {launcher:word} is elastic: {least:n} or more ranks, as hosts come and go": (
        "{slots}；{launcher} 是弹性的：至少 {least} 个进程，随主机增减"
    ),
    "{slots:slots}; how many ranks {launcher:word} starts depends on options that only it can settle": (
        "{slots}；{launcher} 启动多少进程取决于只有它自己才能确定的选项"
    ),
    "{slots:slots}; {launcher:word} starts {ranks:counts}, {each:n} on each host, {fill:fill}": (
        "{slots}；{launcher} 启动 {ranks}，每台主机 {each} 个，{fill}"
    ),
    "{slots:slots}; {launcher:word} starts {ranks:counts} because it is not told a number (-np), {fill:fill}": (
        "{slots}；没有指定数量（-np），{launcher} 启动 {ranks}，{fill}"
    ),
    "{slots:slots}; {launcher:word} starts {ranks:counts}, {fill:fill}": "{slots}；{launcher} 启动 {ranks}，{fill}",
}
PIECES = {
    "slots": {"{hosts:counts} x {each:counts} = {all:counts}": "{hosts} x {each} = {all}"},
    "counts": {
        "({workers:counts} + 1 launcher)": "（{workers} + 1 个启动器）",
        "{n:n} launcher": "{n} 个启动器",
        "{n:n} worker": "{n} 个 Worker",
        "{n:n} workers": "{n} 个 Worker",
        "{n:n} slot": "{n} 个槽位",
        "{n:n} slots": "{n} 个槽位",
        "{n:n} rank": "{n} 个进程",
        "{n:n} ranks": "{n} 个进程",
        "{n:n} process": "{n} 个进程",
        "{n:n} processes": "{n} 个进程",
    },
    "fill": {
        "which fills them": "正好用满",
        "which leaves {n:n} free": "还空闲 {n} 个槽位",
        "{n:n} more than there are: it may start more than one per slot": "比槽位多 {n} 个：每个槽位可以启动多个",
        "{n:n} more than there are: it would refuse to start": "比槽位多 {n} 个：它会拒绝启动",
    },
}
