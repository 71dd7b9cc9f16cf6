"""What is found of hosts and the ways between them, in Chinese."""

SENTENCES = {
    "{place:place}: {why:reached}": "{place}：{why}",
    "{place:place}: {why:reached} ({what})": "{place}：{why}（{what}）",
    "{why:reached}": "{why}",
    "there is no ssh on this machine": "本机没有 ssh",
    # -- hosts that do not say what they are ------------------------------------------------------------------
    "{host:word}: {why:unsaid}": "{host}：{why}",
    "{why:unsaid}": "{why}",
    "its shell may start something else: log in with ssh, and look at its start-up files": (
        "它的 shell 可能启动了别的程序：请用 ssh 登录，查看它的启动文件"
    ),
    # -- what is well -----------------------------------------------------------------------------------------
    "its name is known": "名称可以解析",
    "its port answers": "端口有应答",
    "its host key is the known one": "主机公钥与已知的一致",
    "it lets us log in": "可以登录",
    "it knows the name": "认识这个名称",
    "it reaches the ssh port": "能连到 ssh 端口",
    "it knows the host key": "认识主机公钥",
    "it may log in": "可以登录",
    "it connects to an mpirun there ({address})": "能连到那里的 mpirun（{address}）",
    "the user is {user:word} ({uid:word})": "用户是 {user}（{uid}）",
    "its clock is right within {seconds:word} s": "时钟误差在 {seconds} 秒之内",
    "a command over ssh sees what a login sees": "ssh 命令与登录 shell 看到的相同",
    "{folder:word} can be written": "{folder} 可写",
    "{n:word} MiB are free for {folder:word}": "{folder} 有 {n} MiB 可用空间",
    "{n:word} GPUs": "{n} 个 GPU",
    # -- one host ---------------------------------------------------------------------------------------------
    "{host:word}: its clock is {seconds:word} s ahead": "{host}：时钟快了 {seconds} 秒",
    "{host:word}: its clock is {seconds:word} s behind": "{host}：时钟慢了 {seconds} 秒",
    "{host:word}: its clock is {seconds:word} s {where:word}": "{host}：时钟偏差 {seconds} 秒（{where}）",
    "set it there, by chrony or ntp": "请在那台主机上用 'chrony' 或 'ntp' 校准",
    "{host:word}: mpirun is only found in a login shell, where files such as ~/.profile add {folder:word}": (
        "{host}：只有登录 shell 能找到 mpirun，其中 ~/.profile 等文件添加了 {folder}"
    ),
    "jobs of oarsman still find it; plain mpirun does not: add the folder in ~/.bashrc, before it returns": (
        "oarsman 的作业仍能找到它，直接用 mpirun 则不能：请在 ~/.bashrc 提前返回之前添加该目录"
    ),
    "{host:word}: a command over ssh finds {one:word}, a login shell {other:word}": (
        "{host}：ssh 命令找到的是 {one}，登录 shell 找到的是 {other}"
    ),
    "let both find the same, or say in the inventory which it is (mpi: /opt/openmpi)": (
        "请让两者一致，或在主机清单里写明用哪个（'mpi: /opt/openmpi'）"
    ),
    "{host:word}: jobs cannot keep their files in {folder:word}: {why}": "{host}：作业无法在 {folder} 存放文件：{why}",
    "let the user write there, or name another folder in the inventory (folder: /scratch/oarsman)": (
        "请让用户可以写入，或在主机清单里换一个目录（'folder: /scratch/oarsman'）"
    ),
    "{host:word}: how much is free is not known": "{host}：不知道还有多少可用空间",
    "{host:word}: the disk is full: {n:word} MiB are free for {folder:word}": (
        "{host}：磁盘已满：{folder} 只有 {n} MiB 可用空间"
    ),
    "make room there": "请腾出空间",
    "{host:word}: {n:word} GPUs were found, the inventory says {wanted:word}": (
        "{host}：找到 {n} 个 GPU，主机清单写的是 {wanted} 个"
    ),
    "correct the inventory, or look at nvidia-smi there": "请更正主机清单，或在那台主机上查看 nvidia-smi",
    # -- the same everywhere ----------------------------------------------------------------------------------
    "{host:word}: {user:word} has the user id {own:word} there, and {uid:word} on the other hosts": (
        "{host}：{user} 在那里的用户 ID 是 {own}，在其他主机上是 {uid}"
    ),
    "files in shared folders belong to somebody else there; give the user the same id everywhere": (
        "共享目录中的文件在那里属于别人；请让用户在各处有相同的 ID"
    ),
    "{host:word}: the user is {own:word} there, and {user:word} on the other hosts": (
        "{host}：那里的用户是 {own}，其他主机上是 {user}"
    ),
    "say user: in the inventory": "请在主机清单里写明 'user:'",
    "{host:word}: {mpi:word} did not say in time which MPI it is": "{host}：{mpi} 没有及时说明它是哪种 MPI",
    "try it there: mpirun --version": "请在那里试一试：'mpirun --version'",
    "{host:word}: no MPI was found": "{host}：没有找到 MPI",
    "install the MPI that the other hosts have, or say in the inventory where it is (mpi: /opt/openmpi)": (
        "请安装与其他主机相同的 MPI，或在主机清单里写明它在哪里（'mpi: /opt/openmpi'）"
    ),
    "{host:word} has its MPI in {own:word}, the other hosts in {theirs:word}": (
        "{host} 的 MPI 在 {own}，其他主机的在 {theirs}"
    ),
    "{host:word} has {own}, the other hosts {theirs}": "{host} 装有 {own}，其他主机是 {theirs}",
    "say mpi: {path:word} for it in the inventory": "请在主机清单里为它写明 'mpi: {path}'",
    "install {mpi} there": "请在那里安装 {mpi}",
    "mpirun looks for its parts in the same folder everywhere: install it there": (
        "mpirun 在各处的同一目录里查找其组件：请装到那里"
    ),
    # -- ways between hosts -----------------------------------------------------------------------------------
    "{host:word} has no ssh to go to {others}": "{host} 没有可用来连接 {others} 的 ssh",
    "jobs of oarsman do not need it": "oarsman 的作业不需要它",
    "{host:word} cannot log in to {others}: {why:reached}": "{host} 无法登录 {others}：{why}",
    "{host:word} cannot log in to {others}: {why}": "{host} 无法登录 {others}：{why}",
    "jobs of oarsman do not need it; 'oarsman hosts trust' sets it up for plain mpirun": (
        "oarsman 的作业不需要它；'oarsman hosts trust' 可为直接使用 mpirun 设置好"
    ),
    "jobs of oarsman use addresses; for plain mpirun and programs that use names, add it to /etc/hosts there": (
        "oarsman 的作业使用地址；若直接使用 mpirun 或程序要用名称，请在那里的 /etc/hosts 中添加"
    ),
    "jobs of oarsman do not need it; plain mpirun does": "oarsman 的作业不需要它；直接使用 mpirun 则需要",
    "whether {host:word} can connect to {others} was not tried: {why:untried}": (
        "没有测试 {host} 能否连到 {others}：{why}"
    ),
    "{host:word} cannot connect to {other:word} ({address:word}): {why:call}": (
        "{host} 无法连到 {other}（{address}）：{why}"
    ),
    "{host:word} cannot connect to {other:word} ({address:word}): {why}": "{host} 无法连到 {other}（{address}）：{why}",
    "mpirun needs this: open the firewall between the hosts, or name another network for them (interface:)": (
        "mpirun 需要它：请放开主机之间的防火墙，或为它们指定另一个网络（'interface:'）"
    ),
    "mpirun started a process on each of {n:word} hosts": "mpirun 在 {n} 台主机上各启动了一个进程",
    "a job started a process on each of {n:word} hosts": "一个作业在 {n} 台主机上各启动了一个进程",
    "a job ran, but not on {names}: others keep the slots there busy": "作业没有在 {names} 上运行：那里的槽位被占用",
    "a job over all hosts failed: {why}": "在所有主机上运行的作业失败：{why}",
    "mpirun was not tried: no host passed": "没有运行 mpirun：没有主机通过检查",
    "mpirun was not tried: {host:word} cannot log in to {other:word}": "没有运行 mpirun：{host} 无法登录 {other}",
    "mpirun was not tried: plain mpirun does not know the port and user of {host:word}": (
        "没有运行 mpirun：直接使用的 mpirun 不知道 {host} 的端口和用户"
    ),
    "a job does it without trust between hosts: {command}": "作业无需主机互信即可完成：'{command}'",
    "mpirun over all hosts failed: {why}": "在所有主机上运行 mpirun 失败：{why}",
    "mpirun over all hosts failed (nothing came from {hosts}): {why}": (
        "在所有主机上运行 mpirun 失败（{hosts} 没有输出）：{why}"
    ),
    # -- speeds -----------------------------------------------------------------------------------------------
    "round trip of ping, or of a line through ssh where there is no ping": (
        "'ping' 的往返时间；没有 'ping' 时为一行文字经 ssh 往返的时间"
    ),
    "{n:word} MiB through ssh, so at most what its encryption does on one core": (
        "经 ssh 传送 {n} MiB，因此不会超过单核加密的速度"
    ),
    "there is no ping on {host:word}": "{host} 上没有 'ping'",
    "sending failed on {host:word}": "{host} 发送失败",
    "{host:word} cannot log in to {other:word}": "{host} 无法登录 {other}",
    # -- networks and inventories -----------------------------------------------------------------------------
    "{host:word} has no working network {wanted:word}; it has {there}": "{host} 没有可用的网络 {wanted}；它有 {there}",
    "correct the interface of the host in the inventory": "请更正主机清单里该主机的网络接口",
    "{host:word} has no address that another host could connect to": "{host} 没有其他主机能连到的地址",
    "{one:word} and {other:word} have the same addresses, as if they were one machine": (
        "{one} 和 {other} 的地址相同，好像是同一台机器"
    ),
    "leave one of them out of the inventory, or give each its own address": (
        "请从主机清单里去掉其中一台，或给每台各自的地址"
    ),
    "no network connects the hosts ({all})": "没有网络把这些主机连在一起（{all}）",
    "name the network of each host in the inventory (interface: eth1, or interface: 10.0.0.0/24)": (
        "请在主机清单里写明每台主机的网络（'interface: eth1' 或 'interface: 10.0.0.0/24'）"
    ),
    "no hosts are known: there is no {file}, and neither --hosts nor {name:word} names a file": (
        "不知道有哪些主机：没有 {file}，--hosts 和 {name} 也没有指定文件"
    ),
    "write a file with two lines, 'node1 slots=8' and 'node2 slots=8', and say --hosts FILE": (
        "请写一个两行的文件：'node1 slots=8' 和 'node2 slots=8'，再用 --hosts 指定它"
    ),
    "what was found of the hosts cannot be kept: {why}": "无法保存主机的检查结果：{why}",
    # -- what to do -------------------------------------------------------------------------------------------
    "correct it, or give the host an address in the inventory or in {config}": (
        "请更正名称，或在主机清单或 {config} 里给出地址"
    ),
    "start sshd there, or correct the port": "请在那里启动 sshd，或更正端口",
    "it is switched off, or a firewall drops the connection": "它已关机，或防火墙丢弃了连接",
    "check its address, routes and firewalls": "请检查它的地址、路由和防火墙",
    "accept it with 'oarsman hosts trust', or by '{words}' once": (
        "用 'oarsman hosts trust' 接受它，或执行一次 '{words}'"
    ),
    "if it was installed anew: {words}; then 'oarsman hosts trust'. If not, stay away from it": (
        "如果它重装过：先执行 '{words}'，再执行 'oarsman hosts trust'。否则请不要连接它"
    ),
    "do not connect before its owner has given it a new one": "在它的管理者更换公钥之前请不要连接",
    "check the user and the key, or let 'oarsman hosts trust' put a key there": (
        "请检查用户和密钥，或用 'oarsman hosts trust' 把密钥放到那里"
    ),
    "it was switched off or cut off, or its sshd has too many connections": "它已关机或断网，或它的 sshd 连接过多",
    "try '{words}'": "请试试 '{words}'",
    "install OpenSSH's client": "请安装 OpenSSH 客户端",
}
PIECES = {
    "place": {"{host:word} ({address:word})": "{host} ({address})", "{host:word}": "{host}"},
    "reached": {
        "the name {name:word} is not known": "无法解析名称 {name}",
        "nothing listens on port {port:word}": "端口 {port} 没有程序在监听",
        "no answer on port {port:word}": "端口 {port} 没有应答",
        "there is no way to it in the network": "网络不可达",
        "its host key is not known yet": "它的主机公钥尚不认识",
        "its host key is not the one in known_hosts": "它的主机公钥与 known_hosts 中的不一致",
        "its host key is not the one in known_hosts ({where:word})": "它的主机公钥与 known_hosts（{where}）中的不一致",
        "its host key is marked as revoked": "它的主机公钥已被标记为吊销",
        "it does not let us log in": "它不允许登录",
        "it does not let us log in as {user:word}": "它不允许以 {user} 登录",
        "the connection was closed": "连接被关闭",
        "no answer in time": "没有及时应答",
        "nothing began there within {seconds:n} seconds": "{seconds} 秒内那里没有任何东西启动",
        "{folder:word} belongs to somebody else": "{folder} 属于别人",
        "what it says makes no sense": "无法理解它的回答",
        "ended with code {code:n}": "以退出码 {code} 结束",
        "a command is not there: {what}": "缺少命令：{what}",
        "the jump host {jump:word} on the way to it failed: {why}": "途中的跳板机 {jump} 失败：{why}",
        "the jump host {jump:word} on the way to it failed": "途中的跳板机 {jump} 失败",
        "the jump host on the way to it failed: {why}": "途中的跳板机失败：{why}",
        "the jump host on the way to it failed": "途中的跳板机失败",
    },
    "unsaid": {
        "the host did not describe itself: it said nothing": "主机没有说明自己的情况：什么也没有输出",
        "the host did not describe itself: it said {words}": "主机没有说明自己的情况：它输出了 {words}",
        "the host describes itself in version {its:word}; this is version {ours:word}": (
            "主机说明自己时用的是版本 {its}；这里是版本 {ours}"
        ),
        "the host stopped in the middle of describing itself": "主机说明自己的情况时中断了",
        "a host describes itself in words that make no sense: {why}": "无法理解主机的说明：{why}",
    },
    "untried": {
        "no mpirun listens on {host:word}": "{host} 上没有 mpirun 在监听",
        "the mpirun on {host:word} ended": "{host} 上的 mpirun 已结束",
        "{host:word} did not answer in time": "{host} 没有及时应答",
        "{host:word} did not answer": "{host} 没有应答",
        "{host:word} has neither ssh nor bash to try it with": "{host} 既没有 ssh 也没有 'bash' 可用来测试",
    },
    "call": {
        "no answer, as if a firewall dropped it": "没有应答，像是被防火墙丢弃",
        "refused, although an mpirun listens there, as if a firewall did it": (
            "虽有 mpirun 在监听却被拒绝，像是防火墙所为"
        ),
    },
}
