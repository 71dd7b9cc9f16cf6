"""Why a job failed and what would help, in Chinese. What programs wrote themselves is kept as it is."""

SENTENCES = {
    "{who:who} exited with code {code:n}{rest:ending?}": "{who} 以退出码 {code} 结束{rest}",
    "{who:who} was killed by signal {number:n} ({name:signal}){rest:ending?}": (
        "{who} 被信号 {number}（{name}）终止{rest}"
    ),
    "{who:who} called MPI_Abort with code {code:n}{rest:ending?}": "{who} 调用了 MPI_Abort，代码 {code}{rest}",
    "the launcher ended with code 255, as it does when a host or the daemon on it is lost{rest:ending?}": (
        "启动器以退出码 255 结束，这通常是因为失去了一台主机或其上的守护进程{rest}"
    ),
    "the launcher failed{rest:ending?}": "启动器失败{rest}",
    "launcher lost: {host:word} vanished before it ended": "启动器丢失：{host} 在结束之前消失了",
    "{host:word} was lost: {why:say}": "{host} 失联：{why}",
    "the install commands failed": "安装命令失败",
    "the image's mpirun is MPICH's (Hydra), while the job says Open MPI, which is the default": (
        "镜像里的 mpirun 属于 MPICH（Hydra），而作业写的是 Open MPI（默认值）"
    ),
    "the image's mpirun is Open MPI's, while the job says MPICH or Intel MPI": (
        "镜像里的 mpirun 属于 Open MPI，而作业写的是 MPICH 或 Intel MPI"
    ),
    # -- what befalls ranks on one machine ----------------------------------------------------------------
    "its log could not be written: {why}": "无法写入它的日志：{why}",
    "its log could not be opened: {why}": "无法打开它的日志：{why}",
    "the log could not be written: {why}": "无法写入日志：{why}",
    "its MPI library is that of {theirs}, but the launcher is {ours}'s: each rank ran alone": (
        "它的 MPI 库属于 {theirs}，而启动器属于 {ours}：各进程各自单独运行"
    ),
    "it could not be started": "无法启动它",
    "all its processes were killed": "它的所有进程都被杀死了",
    "it gave no sign of life for {seconds:n} seconds": "它已有 {seconds} 秒没有任何动静",
    "{who} gave no sign of life for {seconds:n} seconds": "{who} 已有 {seconds} 秒没有任何动静",
    # -- hints of exit codes and signals --------------------------------------------------------------------
    "the program uses instructions this CPU lacks: build it for the hosts it runs on": (
        "程序使用了此 CPU 没有的指令：请针对运行它的主机重新编译"
    ),
    "give the host more shared memory: an emptyDir volume with medium Memory on /dev/shm": (
        "给主机更多共享内存：在 /dev/shm 挂载 medium 为 Memory 的 emptyDir 卷"
    ),
    "look at the memory it used, and raise the memory limit of the role that ran it": (
        "查看它用了多少内存，并提高运行它的角色的内存上限"
    ),
    "check that the file is a program for this CPU and that its execute permission is set": (
        "检查该文件是否是此 CPU 的程序，以及是否有执行权限"
    ),
    "check the spelling and that the program is installed at the same path on every worker": (
        "检查拼写，以及程序是否安装在每个 Worker 的相同路径下"
    ),
    "raise the memory limit of the role that ran it, or use less memory per rank": (
        "提高运行它的角色的内存上限，或减少每个进程的内存用量"
    ),
    # -- hints of known errors --------------------------------------------------------------------------------
    "what they wrote is in the log; they are the annotation oarsman.dev/install": (
        "它们的输出在日志中；它们来自注解 oarsman.dev/install"
    ),
    "say which MPI the image has: --mpi mpich, or spec.mpiImplementation: MPICH (of Intel MPI: intel, Intel)": (
        "请说明镜像里是哪种 MPI：--mpi mpich，或 spec.mpiImplementation: MPICH（Intel MPI 则为 intel、Intel）"
    ),
    "say which MPI the image has: --mpi openmpi, or spec.mpiImplementation: OpenMPI": (
        "请说明镜像里是哪种 MPI：--mpi openmpi，或 spec.mpiImplementation: OpenMPI"
    ),
    "the GPU's memory is full: use a smaller batch, or fewer ranks per GPU": (
        "GPU 显存已满：请减小批量，或减少每个 GPU 上的进程数"
    ),
    "a collective never completed: another rank ended or hangs, or the network between hosts is blocked; "
    "NCCL_DEBUG=INFO and NCCL_SOCKET_IFNAME help to find out which": (
        "一次集合通信没有完成：另一个进程已结束或卡住，或者主机之间的网络不通；"
        "NCCL_DEBUG=INFO 和 NCCL_SOCKET_IFNAME 有助于查明原因"
    ),
    "install the module in the Python that the workers run, not only where the job was submitted": (
        "请把模块安装到 Worker 运行的 Python 中，而不只是提交作业的地方"
    ),
    "a disk is full on that host: free some room, or write to a larger volume (a full /dev/shm says the same)": (
        "那台主机的磁盘已满：请腾出空间，或写到更大的卷上（/dev/shm 写满时也是同样的错误）"
    ),
    "more ranks were asked for than slots: raise slotsPerWorker or the number of workers, lower -np, or add "
    "--oversubscribe": ("要求的进程数多于槽位：请增大 slotsPerWorker 或 Worker 数量，减小 -np，或加上 --oversubscribe"),
    "add --allow-run-as-root to mpirun, or run as another user": "给 mpirun 加上 --allow-run-as-root，或换一个用户运行",
    "leave the hostfile to the job: it is given to mpirun already and lies at /etc/mpi/hostfile": (
        "hostfile 请交给作业处理：它已经传给 mpirun，位于 /etc/mpi/hostfile"
    ),
    "this mpirun does not know that option: Open MPI 5 wants two dashes (--bind-to, --map-by), and MPICH and Intel "
    "MPI have other options than Open MPI": (
        "此 mpirun 不认识该选项：Open MPI 5 要求两个短横线（--bind-to、--map-by），"
        "MPICH 和 Intel MPI 的选项与 Open MPI 不同"
    ),
    "a worker's ssh host key is not trusted: set StrictHostKeyChecking no for the job's hosts, or add the key to "
    "known_hosts": (
        "某个 Worker 的 ssh 主机密钥不受信任：请为作业的主机设置 StrictHostKeyChecking no，或把密钥加入 known_hosts"
    ),
    "ssh was refused: check that sshAuthMountPath is the home of the user that logs in, and that the key files "
    "belong to that user with mode 0600": (
        "ssh 被拒绝：请检查 sshAuthMountPath 是否是登录用户的主目录下的目录，密钥文件是否属于该用户且权限为 0600"
    ),
    "a host name does not resolve. Names of this job's hosts only resolve inside its network; for names of the world "
    "outside, {way:known}": ("某个主机名无法解析。此作业的主机名只能在它自己的网络内解析；要使用外部的名称，{way}"),
    "set the annotation oarsman.dev/network: host, or run with --network host": (
        "请设置注解 oarsman.dev/network: host，或用 --network host 运行"
    ),
    "the program was built for another MPI than the one that starts it: use the mpirun of the same installation, "
    "and the same image or environment on every host": (
        "程序是为另一种 MPI 编译的：请使用同一套安装里的 mpirun，并让每台主机使用相同的镜像或环境"
    ),
    "another process has that port: choose another MASTER_PORT, or leave the choice to the launcher": (
        "端口已被另一个进程占用：请换一个 MASTER_PORT，或由启动器选择"
    ),
    "check the spelling and that the program is installed at the same path on every worker, and that PATH is set for "
    "logins that are not interactive": (
        "检查拼写，程序是否安装在每个 Worker 的相同路径下，以及非交互登录是否设置了 PATH"
    ),
    "hosts can log in to each other but not talk: name the network interface (--mca btl_tcp_if_include eth0 --mca "
    "oob_tcp_if_include eth0) and check for a firewall": (
        "主机之间可以登录但不能通信：请指定网络接口（--mca btl_tcp_if_include eth0 --mca "
        "oob_tcp_if_include eth0），并检查防火墙"
    ),
    "there is no way to that host: check its address and the network; with a private network, {way:known}": (
        "无法到达那台主机：请检查它的地址和网络；如果是私有网络，{way}"
    ),
    "a host did not answer: its ssh server or the process there was not running, or a firewall is in the way": (
        "某台主机没有应答：那里的 ssh 服务或进程没有运行，或者被防火墙阻挡"
    ),
    "a file is missing on that host: every worker needs the files a rank reads, at the same path": (
        "那台主机上缺少文件：每个 Worker 都要在相同路径下有进程所读的文件"
    ),
}
PIECES = {
    "who": {
        "rank {rank:n} on {host:word}": "{host} 上的进程 {rank}",
        "rank {rank:n}": "进程 {rank}",
        "rank {rank:n} on {host:word} ({machine:word})": "{host}（{machine}）上的进程 {rank}",
        "a rank on {host:word} ({machine:word})": "{host}（{machine}）上的一个进程",
        "a rank on {host:word}": "{host} 上的一个进程",
        "a rank": "一个进程",
        "the launcher": "启动器",
    },
    # What may follow: the first that fits is taken, so the most particular come first.
    "ending": {
        " (not executable){rest:ending?}": "（不可执行）{rest}",
        " (command not found){rest:ending?}": "（找不到命令）{rest}",
        ", often a full /dev/shm{rest:ending?}": "，通常是 /dev/shm 已满{rest}",
        ", often out of memory{rest:ending?}": "，通常是内存不足{rest}",
        ": its memory limit was reached{rest:ending?}": "：达到了内存上限{rest}",
        ": it wrote nothing": "：它没有任何输出",
        ": {said}": "：{said}",
        " ({reason:say}){rest:ending?}": "（{reason}）{rest}",
    },
    "signal": {
        "Hangup": "挂断",
        "Interrupt": "中断",
        "Quit": "退出",
        "Illegal instruction": "非法指令",
        "Trace trap": "跟踪陷阱",
        "Aborted": "中止",
        "Bus error": "总线错误",
        "Floating point exception": "浮点异常",
        "Killed": "强制终止",
        "User signal 1": "用户信号 1",
        "Segmentation fault": "段错误",
        "User signal 2": "用户信号 2",
        "Broken pipe": "管道断开",
        "Alarm clock": "定时信号",
        "Terminated": "终止",
        "CPU time limit exceeded": "超过 CPU 时间上限",
        "File size limit exceeded": "超过文件大小上限",
        "Bad system call": "错误的系统调用",
        "unknown": "未知",
    },
}
