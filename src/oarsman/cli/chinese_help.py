"""The job index of Simplified Chinese: the help pages."""

from __future__ import annotations

from oarsman.cli.chinese_console import CONSOLE
from oarsman.cli.chinese_env import ENV
from oarsman.cli.chinese_hosts import HOSTS
from oarsman.cli.chinese_hosts_trust import HOSTS_TRUST
from oarsman.cli.chinese_kube import KUBE
from oarsman.cli.chinese_operator import OPERATOR
from oarsman.cli.chinese_serve import SERVE
from oarsman.cli.chinese_ssh import SSH
from oarsman.cli.chinese_sweep import SWEEP

_COMMAND = {
    "Usage: ": "用法：",
    "Options": "选项",
    "Common options": "通用选项",
    "Examples": "示例",
    "Run": "运行",
    "Look": "查看",
    "Change": "变更",
    "Check": "检查",
    "Other": "其他",
    "VERB ...": "命令 ...",
    "[OPTIONS] FILE | [OPTIONS] -n N [--] COMMAND...": "[选项] 清单文件 | [选项] -n N [--] 程序...",
    "Show this page.": "显示本页。",
    "Show the version.": "显示版本。",
    "Say only what was asked for.": "只输出所要的内容。",
    "No colours (also: NO_COLOR=1).": "不用颜色（也可设 NO_COLOR=1）。",
    "Show the whole traceback of an unexpected error.": "出现意外错误时显示完整调用栈。",
    "Print as {forms}.": "输出形式：{forms}。",
    "The namespace meant by names that mention none.": "名称没有写明命名空间时所用的命名空间。",
    "what this machine can do": "看看这台机器能做什么",
    "four ranks of a program, no manifest": "四个 rank 运行一个程序，不写清单",
    "a job as its manifest says": "按清单运行作业",
    "the same, for a program": "同上，供程序读取",
    "the same": "同上",
}

_PARAGRAPHS = {
    "Run MPI jobs: one MPIJob manifest on this machine, on SSH hosts or on Kubernetes.": (
        "运行 MPI 作业：同一份 MPIJob 清单，可在本机、SSH 主机或 Kubernetes 上运行。"
    ),
    "Run a job in the foreground. Its lines appear as they are written, each with its rank and host; "
    "the exit code is the job's. Give a manifest, or -n and a command.\n\n"
    "Ctrl-C stops the job and waits for that; a second Ctrl-C leaves it to the supervisor, or to the operator.": (
        "在前台运行一个作业。输出逐行实时显示，每行标明 rank 与主机；退出码就是作业的退出码。"
        "给出清单，或者 -n 加一条命令。\n\n"
        "按 Ctrl-C 停止作业并等它停下；再按一次 Ctrl-C 则交给后台管理进程或 operator 处理。"
    ),
    "Submit jobs and return at once. The supervisor runs them whether or not this terminal stays open; "
    "the names of the jobs are printed. Give manifests, - for standard input, or -n and a command.": (
        "提交作业并立即返回。无论终端是否关闭，后台管理进程都会运行它们；打印作业的名称。"
        "给出清单文件，用 - 表示标准输入，或者 -n 加一条命令。"
    ),
    "Wait until jobs have reached a state. The exit code is 0 when they have, 1 when one no longer can "
    "(it ended otherwise or is gone), 124 when the time is up.": (
        "等待作业达到某个状态。达到时退出码为 0；已不可能达到（以别的方式结束或已不存在）为 1；超时为 124。"
    ),
    "List the jobs, the newest last. Without --namespace, those of every namespace; on a cluster, of one.": (
        "列出作业，最新的在最后。不给 --namespace 时列出所有命名空间的作业；在集群上只列出一个。"
    ),
    "Show jobs by name. With -o yaml or json, the whole MPIJob with its status, as Kubernetes would print it.": (
        "按名称显示作业。用 -o yaml 或 json 时输出带状态的完整 MPIJob，与 Kubernetes 的形式相同。"
    ),
    "Show one job on one page: what was asked, how it went, where its ranks ran and, if it failed, why.": (
        "用一页说明一个作业：要求是什么，经过如何，各 rank 在哪里运行；若失败，为什么。"
    ),
    "Show what a job wrote, in the order it was written. Every line carries its rank and host. "
    "Logs stay until the job is deleted.": (
        "按写出的顺序显示作业的输出。每行标明 rank 与主机。日志一直保留到作业被删除。"
    ),
    "Show what happened to a job, oldest first. Without a name, to every job.": (
        "显示作业经历的事件，最早的在前。不给名称时显示所有作业的事件。"
    ),
    "Show what every host of a job uses now: processes, CPU, memory, GPUs. Without a name, of every job that runs.": (
        "显示作业各主机当前的用量：进程、CPU、内存、GPU。不给名称时显示所有在运行的作业。"
    ),
    "Change the number of workers. A running elastic job (Horovod) learns of it through discover_hosts.sh; "
    "workers with the highest numbers go first.": (
        "改变 worker 的数量。运行中的弹性作业（Horovod）通过 discover_hosts.sh 得知；缩减时先去掉编号最大的。"
    ),
    "Suspend jobs: their processes end, their records and logs stay. "
    "`oarsman resume` starts them again from the beginning of their work.": (
        "挂起作业：进程结束，记录和日志保留。用 `oarsman resume` 可从头重新开始。"
    ),
    "Resume suspended jobs. They queue for room again and start as a new attempt.": (
        "恢复挂起的作业。它们重新排队等待资源，作为新的一次尝试启动。"
    ),
    "Stop jobs for good: their processes end, their records and logs stay. "
    "A stopped job counts as failed, with the reason StoppedByUser.": (
        "永久停止作业：进程结束，记录和日志保留。被停止的作业算作失败，原因是 StoppedByUser。"
    ),
    "Delete jobs with their records and logs. Running ones are stopped first. "
    "Only --all on a terminal asks back, unless --yes is given.": (
        "删除作业及其记录和日志。正在运行的会先停止。只有在终端上用 --all 时才会询问，--yes 则不问。"
    ),
    "Check manifests without running anything. Every problem is shown with its file, line, column and field. "
    "The exit code is 0 if all are valid, otherwise 2.": (
        "检查清单，不运行任何东西。每个问题都给出文件、行、列和字段。全部有效时退出码为 0，否则为 2。"
    ),
    "Show what a job would be: hosts, slots, where each rank goes, hostfile, environment, the launch line as "
    "written and as it would run, and every object that would be made. Nothing is changed.": (
        "显示作业将会是什么样：主机、槽位、每个 rank 的位置、hostfile、环境变量、所写的和实际运行的启动命令行，"
        "以及将会创建的每个对象。不做任何改动。"
    ),
    "Write a manifest in another version of the MPIJob API. The result goes to standard output; "
    "what the other version cannot say is named on standard error.": (
        "把清单改写为 MPIJob API 的另一个版本。结果写到标准输出；另一版本无法表达的内容在标准错误中列出。"
    ),
    "Look at this machine: which MPI, ssh, GPUs, cgroups and namespaces it has, and what to install. "
    "With --on ssh, look at the hosts: whether they answer, and which MPI they have. "
    "With --on kube, look at the cluster: its server, MPIJobs, operator, nodes and your rights. "
    "The exit code is 0 unless no job at all could run.": (
        "检查这台机器：有哪些 MPI、ssh、GPU、cgroup 和命名空间，还需要安装什么。"
        "加 --on ssh 则检查各台主机：是否应答，有哪些 MPI。"
        "加 --on kube 则检查集群：服务器、MPIJob、operator、节点和你的权限。"
        "除非完全无法运行作业，否则退出码为 0。"
    ),
    "See or end the process that looks after jobs. It starts by itself when it is needed and leaves when nothing "
    "is left to do. Ending it ends no job: they go on, and the next command takes them up again.": (
        "查看或结束照管作业的后台管理进程。它在需要时自行启动，无事可做时自行退出。"
        "结束它不会结束任何作业：作业继续运行，下一条命令会重新接管。"
    ),
    "Print a script for shell completion: of verbs, options and jobs. Load it from the shell's profile.": (
        "打印 shell 补全脚本：可补全命令、选项和作业名。请在 shell 的配置文件中加载。"
    ),
    "Show the version of oarsman, of Python and of the system. Put its output into a report.": (
        "显示 oarsman、Python 和系统的版本。报告问题时请附上。"
    ),
}

_OPTIONS = {
    "Run the COMMAND on N ranks, without a manifest.": "用 N 个 rank 运行命令，不需要清单。",
    "Hosts to spread the ranks over; default 2, on SSH hosts what is needed.": "分布到几台主机；默认 2，SSH 按需。",
    "Ranks per host; default: as many as needed.": "每台主机的 rank 数；默认按需。",
    "A variable for every rank; repeatable.": "给每个 rank 的环境变量；可重复。",
    "CPUs per worker: 2, 500m.": "每个 worker 的 CPU：2、500m。",
    "Memory per worker: 4Gi.": "每个 worker 的内存：4Gi。",
    "GPUs per worker.": "每个 worker 的 GPU 数。",
    "Leave the workers in place after the end.": "结束后保留 worker。",
    "The job's name; default: the manifest's, or from the program.": "作业名；默认取自清单或程序名。",
    "openmpi, mpich, intel, or a path; default: found on PATH.": "openmpi、mpich、intel 或路径；默认在 PATH 中找。",
    "An address for every host, or the machine's own network.": "每台主机各有地址，或共用本机网络。",
    "Admit the job even if the machine is smaller than it asks.": "即使机器资源不够也接纳该作业。",
    "The higher one starts first; default 0.": "数值大的先启动；默认 0。",
    "End the job after: 90s, 10m.": "超过此时间就结束作业：90s、10m。",
    "Do not say which rank wrote a line.": "不标明每行出自哪个 rank。",
    "Begin every line with its time.": "每行前加上时间。",
    "Take the place of an ended job of the same name.": "取代同名的已结束作业。",
    "Delete the job, with its logs, after it has ended.": "结束后删除作业及其日志。",
    "Return when the jobs have ended; the exit code is the first failure's.": "作业结束才返回；退出码取首个失败。",
    "Only jobs in this state: Running, Queued, Failed, ...": "只列出此状态的作业：Running、Queued、Failed 等。",
    "Go on until the job ends.": "持续显示，直到作业结束。",
    "Only this rank; repeatable.": "只看此 rank；可重复。",
    "Only ranks on this worker; repeatable.": "只看此 worker 上的 rank；可重复。",
    "Only what the launcher itself wrote.": "只看 launcher 自己的输出。",
    "Only what was written to stderr.": "只看写到 stderr 的内容。",
    "Only lines since: 5m (ago), or 2026-01-31T08:00:00Z.": "只看此后的行：5m（之前）或 2026-01-31T08:00:00Z。",
    "Only the last N lines.": "只看最后 N 行。",
    "Of this attempt; default: the newest.": "第几次尝试；默认最新一次。",
    "The state to wait for.": "要等待的状态。",
    "Give up after: 60s, 10m; default: never.": "最多等多久：60s、10m；默认一直等。",
    "How many workers there shall be.": "worker 应有的数量。",
    "Every job, or every one in --namespace.": "所有作业，或 --namespace 中的所有作业。",
    "Do not ask.": "不询问。",
    "Return when nothing of them is left.": "等到没有任何残留才返回。",
    "The version to write.": "要写成的版本。",
}

_EXAMPLES = {
    "the job of a manifest": "清单中的作业",
    "four ranks on two hosts, no manifest": "两台主机上的四个 rank，不写清单",
    "four hosts with limits": "四台主机，带资源上限",
    "only what the ranks wrote, and no record afterwards": "只要各 rank 的输出，之后不留记录",
    "every job of both files, or none if one has a mistake": "两个文件中的全部作业；有一处错误则一个也不提交",
    "a command, without a manifest": "一条命令，不写清单",
    "a manifest from a pipe": "来自管道的清单",
    "return when it has ended, with its exit code": "结束后才返回，并给出其退出码",
    "whatever the outcome": "不论结果如何",
    "until nothing of it is left": "直到没有任何残留",
    "until nothing of it runs": "直到没有任何进程在运行",
    "with slots, MPI, owner, attempt and what each job says of itself": "另列槽位、MPI、所有者、尝试和说明",
    "delete the jobs that failed": "删除失败的作业",
    "the document, status included": "完整文档，含状态",
    "one field, for a script": "取一个字段，供脚本使用",
    "a job in the namespace `other`": "命名空间 `other` 中的作业",
    "follow until the job ends": "持续显示到作业结束",
    "two ranks, without tags": "两个 rank，不带标签",
    "the last errors of one host": "一台主机最后的错误输出",
    "the last five minutes, with times": "最近五分钟，带时间",
    "the attempt before the retry": "重试之前的那一次",
    "of every job, for a program": "所有作业，供程序读取",
    "of one job, for a program": "一个作业，供程序读取",
    "in Kubernetes' word": "用 Kubernetes 的叫法",
    "make room without losing the job": "腾出资源而不丢掉作业",
    "two jobs, the second in namespace `other`": "两个作业，第二个在命名空间 `other` 中",
    "when nothing of it is left, the next one": "没有任何残留之后，运行下一个",
    "everything, without a question": "全部删除，不询问",
    "problems as data, for an editor": "以数据形式给出问题，供编辑器使用",
    "from a pipe": "来自管道",
    "of a command, without a manifest": "针对一条命令，不写清单",
    "the manifest that -n stands for, to keep": "-n 所对应的清单，可以保存",
    "the other way, from a pipe": "反方向，来自管道",
    "the findings as data": "以数据形式给出结果",
    "in ~/.bashrc": "写入 ~/.bashrc",
    "in ~/.zshrc": "写入 ~/.zshrc",
    "in ~/.config/fish/config.fish": "写入 ~/.config/fish/config.fish",
}

HELP = {
    **_COMMAND,
    **_PARAGRAPHS,
    **_OPTIONS,
    **_EXAMPLES,
    **OPERATOR,
    **KUBE,
    **CONSOLE,
    **SERVE,
    **ENV,
    **SWEEP,
    **HOSTS,
    **HOSTS_TRUST,
    **SSH,
}
