"""The job index of Simplified Chinese: `oarsman hosts list` and `oarsman hosts check`."""

from __future__ import annotations

HOSTS = {
    "Look at SSH hosts: machines that are reached over ssh and have an MPI, and nothing else. A file "
    "names them, as mpirun's hostfile does: --hosts, OARSMAN_HOSTS, or hosts.yaml, hosts or hostfile in "
    "~/.config/oarsman.": (
        "查看一组主机：只需能用 ssh 登录并装有 MPI 的机器。用一个文件列出它们，写法同 mpirun 的 hostfile："
        "--hosts、OARSMAN_HOSTS，或 ~/.config/oarsman 中的 hosts.yaml、hosts 或 hostfile。"
    ),
    "what there is, and what is free": "有什么，空闲多少",
    "every host, and every way between two of them": "每台主机，以及每两台之间的连接",
    "The hosts: an Open MPI hostfile, or YAML that says more (also: OARSMAN_HOSTS).": (
        "主机清单：Open MPI 的 hostfile，或内容更详细的 YAML（也可设 OARSMAN_HOSTS）。"
    ),
    "`oarsman hosts list` shows the hosts": "`oarsman hosts list` 列出主机",
    "there is no host '{name}' in {file}": "{file} 中没有主机“{name}”",
    # -- list ---------------------------------------------------------------------------------------
    "List the hosts: slots, load, memory, GPUs and MPI of each, and what jobs have of it. Hosts that said nothing "
    "within the last minute are asked again; those that cannot be reached show why.": (
        "列出主机：各自的槽位、负载、内存、GPU 和 MPI，以及作业占用了多少。一分钟内没有应答过的主机会重新询问；"
        "无法到达的主机会说明原因。"
    ),
    "as it is right now": "此刻的情况",
    "Ask every host, however fresh its last answer is.": "询问每台主机，不论上次应答有多新。",
    "waiting for {names}": "正在等待 {names}",
    "FREE": "空闲",
    "USED": "占用",
    "LOAD": "负载",
    "CHECKED": "检查于",
    "ADDRESS": "地址",
    "USER": "用户",
    "FOLDER": "目录",
    # -- check --------------------------------------------------------------------------------------
    "Check the hosts, and every way from one to another: names, ports, host keys, logins, users, clocks, MPI, "
    "PATH, folders, disks, GPUs, and whether each can connect to an mpirun on the others; then run a real mpirun "
    "over all of them. Nothing is changed on any host. The exit code is 0 if nothing failed.\n\n"
    "Warnings are about what other programs need; jobs of oarsman run all the same.": (
        "检查主机以及每两台之间的连接：名称、端口、主机公钥、登录、用户、时钟、MPI、PATH、目录、磁盘、GPU，"
        "以及每台能否连到其他主机上的 mpirun；然后在所有主机上实际运行一次 mpirun。不改动任何主机。"
        "没有失败时退出码为 0。\n\n"
        "警告只涉及其他程序所需；oarsman 的作业照样能运行。"
    ),
    "two of them, and how fast the way between them is": "只查其中两台，并测它们之间的速度",
    "hosts that fail get no jobs until they pass": "未通过的主机在通过之前不分配作业",
    "every step, for programs": "每一步，供程序读取",
    "Give hosts that fail no jobs, until a later check finds them well.": (
        "不给未通过的主机分配作业，直到之后的检查通过。"
    ),
    "Also measure latency and bandwidth between all hosts.": "同时测量所有主机之间的延迟和带宽。",
    "asking the hosts": "正在询问主机",
    "trying the ways between the hosts": "正在测试主机之间的连接",
    "running mpirun over all hosts": "正在所有主机上运行 mpirun",
    "measuring the network": "正在测量网络",
    "{name} is left out: {why}": "{name} 不再使用：{why}",
    "`oarsman hosts check --leave-out` gives {names} no jobs until they pass": (
        "`oarsman hosts check --leave-out` 在 {names} 通过之前不给它们分配作业"
    ),
    "name": "名称",
    "port": "端口",
    "host key": "主机公钥",
    "login": "登录",
    "user": "用户",
    "clock": "时钟",
    "folder": "目录",
    "disk": "磁盘",
    "call-back": "回连",
    "network": "网络",
    "real run": "实际运行",
    "{hosts} hosts, {ways} ways between them; failed: {failed}, warnings: {warned}": (
        "{hosts} 台主机，其间 {ways} 条连接；失败：{failed}，警告：{warned}"
    ),
    "Network": "网络",
    "TO": "到",
    "LATENCY": "延迟",
    "BANDWIDTH": "带宽",
    "no network was measured: it takes two hosts that a network connects": "没有测量网络：需要两台有网络相连的主机",
    "latency ({what})": "延迟（{what}）",
    "bandwidth ({what})": "带宽（{what}）",
    "{what}: least {least}, median {middle}; slowest: {host} -> {other}, {worst}": (
        "{what}：最小 {least}，中位数 {middle}；最慢：{host} -> {other}，{worst}"
    ),
}
