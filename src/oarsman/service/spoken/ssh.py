"""What is said of jobs on SSH hosts, in Chinese."""

SENTENCES = {
    # -- waiting for hosts ------------------------------------------------------------------------------------
    "its hosts are being asked": "正在询问它的主机",
    "it was not asked yet": "尚未询问过",
    "it is not known which hosts the job is for": "不知道作业要用哪些主机",
    "submit it with --hosts FILE": "提交时请加上 '--hosts FILE'",
    "the hosts cannot be read: {why:say}": "无法读取主机清单：{why}",
    "{host:word} does not answer": "{host} 没有应答",
    "{member:word} has no place: {why:each}": "{member} 没有位置：{why}",
    "{host:word} is no longer in the inventory": "{host} 已不在主机清单中",
    # -- what hosts cannot honour -----------------------------------------------------------------------------
    "the launcher has no command. Images are not run on SSH hosts, so there is no entry point to fall back on: add "
    "{field:word}": "启动器没有命令。SSH 主机上不运行镜像，因此没有默认入口：请添加 {field}",
    "image {image:word} is not pulled: the programs of the hosts run": "不拉取镜像 {image}：运行的是主机上的程序",
    "memory limits are not enforced: hosts are used as they are": "不限制内存：主机按原样使用",
    "{field:word}: only the MPI container runs on SSH hosts; do it in the launch command": (
        "{field}：SSH 主机上只运行 MPI 容器；请在启动命令中完成"
    ),
    "{field:word}: only the MPI container runs on SSH hosts; remove the others": (
        "{field}：SSH 主机上只运行 MPI 容器；请去掉其他容器"
    ),
    "{field:word}: nothing is mounted on SSH hosts; use a hostPath whose path is the mountPath, a folder that the "
    "hosts have": "{field}：SSH 主机上不挂载任何卷；请使用路径与 mountPath 相同的 hostPath，即主机上已有的目录",
    "its environment is in {folder:word}, which {host:word} does not share: put OARSMAN_STATE into a folder that all "
    "hosts have, and name that folder under shared in the inventory": (
        "它的环境在 {folder} 中，而 {host} 不共享该目录：请把 OARSMAN_STATE 设在各台主机都有的目录里，"
        "并在主机清单的 'shared' 中写明该目录"
    ),
    # -- which MPI --------------------------------------------------------------------------------------------
    "{host:word} has no {what} (it has none at all). Install one there, or name its folder as `mpi` in the inventory; "
    "'oarsman hosts check' shows what every host has": (
        "{host} 没有 {what}（什么也没有）。请在那里安装，或在主机清单的 `mpi` 中写明其目录；"
        "'oarsman hosts check' 列出各台主机有什么"
    ),
    "{host:word} has no {what} (it has {there}). Install one there, or name its folder as `mpi` in the inventory; "
    "'oarsman hosts check' shows what every host has": (
        "{host} 没有 {what}（那里有 {there}）。请在那里安装，或在主机清单的 `mpi` 中写明其目录；"
        "'oarsman hosts check' 列出各台主机有什么"
    ),
    "{one:word} has {this}, {other:word} has {that}: all need the same, at the same place": (
        "{one} 有 {this}，{other} 有 {that}：各台主机需要相同的 MPI，并在相同的位置"
    ),
    "the hosts have no MPI in common: all need the same, at the same place": (
        "这些主机没有共同的 MPI：各台主机需要相同的 MPI，并在相同的位置"
    ),
    "{host:word} has no working network {wanted:word}; it has no network that is known": (
        "{host} 没有可用的网络 {wanted}；它的网络都不认识"
    ),
    # -- copies of a folder -----------------------------------------------------------------------------------
    "code was not copied: {why:say}": "代码没有复制过去：{why}",
    "free some space there, or name another folder in the inventory": "请在那里腾出空间，或在主机清单里换一个目录",
    "install it on {host:word}, or share the folder and say so in the inventory": (
        "请在 {host} 上安装，或共享该目录并在主机清单里写明"
    ),
    "let the user write there, or name another folder in the inventory": "请让用户可以写入，或在主机清单里换一个目录",
    "name a folder in the inventory that is the user's own": "请在主机清单里写明一个属于该用户自己的目录",
    "wait for the other copy": "请等待另一份复制完成",
    "a file of the job is to be where jobs left a folder with results: move that away": (
        "作业的一个文件要放到先前作业留下结果目录的位置：请把那个目录移走"
    ),
    "the folder {folder} is too large to be copied to the hosts: {what:much}; at most {most} are copied. Largest: "
    "{which}": "目录 {folder} 太大，不能复制到主机：{what}；最多复制 {most}。最大的是：{which}",
    "put patterns for what the job does not need into {file:word}; or say --code none, or {name:word}: none "
    "in the manifest, and nothing is copied; or, if the hosts have the folder too, declare it under 'shared' in the "
    "inventory": (
        "请把作业不需要的内容的匹配模式写入 {file}；或用 '--code none'，或在清单里写 '{name}: none'，这样什么都不复制；"
        "如果主机上也有该目录，也可以在主机清单的 'shared' 中写明"
    ),
    "the job's folder cannot be copied: {file:word}: {why}": "作业的目录无法复制：{file}：{why}",
    "make it readable, or put it into {file:word}": "请让它可读，或写入 {file}",
    # -- the inventory ----------------------------------------------------------------------------------------
    "there is no file {file}": "没有文件 {file}",
    "{file:word} cannot be read: {why}": "无法读取 {file}：{why}",
    "a hostfile with lines such as 'node1 slots=8' will do": "含有 'node1 slots=8' 这样的行的 hostfile 即可",
    "{file} is larger than {n:n} MiB": "{file} 超过 {n} MiB",
    "{file} is not text in UTF-8": "{file} 不是 UTF-8 文本",
    "there is no host here": "这里没有主机",
}
PIECES = {
    "much": {
        "{n:word} files and folders or more": "至少 {n} 个文件和目录",
        "{n:word} files and folders": "{n} 个文件和目录",
        "{n} or more": "至少 {n}",
        "{n}": "{n}",
    },
}
