"""The job index of Simplified Chinese: `oarsman env`, and what jobs say about environments."""

from __future__ import annotations

ENV = {
    "Packages": "软件包",
    "Build and keep environments: named sets of Python packages that jobs run in. The same contents are built "
    "once; a change is built beside the old, and jobs that run keep what they started with.": (
        "构建并保存环境：作业运行时所用的、有名称的一组 Python 软件包。相同的内容只构建一次；"
        "修改后的内容另行构建，正在运行的作业继续使用启动时的内容。"
    ),
    "and see what pip says": "并查看 pip 的输出",
    "a job with these packages": "使用这些软件包的作业",
    "List the environments, each with its state and who uses it.": "列出环境，以及各自的状态和使用者。",
    "Build an environment, or change one, and show what its build says. Ctrl-C leaves the build alone, which "
    "goes on; what is built already is not built again.": (
        "构建或修改一个环境，并显示构建输出。按 Ctrl-C 不影响构建，它会继续进行；已经构建好的不会重新构建。"
    ),
    "packages named here, and an MPI": "在此写明软件包，并安装一个 MPI",
    "return at once": "立即返回",
    "A requirements or lock file, as pip reads it; repeatable.": "pip 能读取的需求文件或锁定文件；可重复。",
    "A package, as pip takes it: numpy, numpy==2.1; repeatable.": "一个软件包，写法同 pip：numpy、numpy==2.1；可重复。",
    "3.11, or 3.11.4; default: the one at hand.": "3.11 或 3.11.4；默认为现有的版本。",
    "Also install this MPI from a wheel.": "同时以 wheel 安装这个 MPI。",
    "On Kubernetes: the image of the jobs, which builds it.": "在 Kubernetes 上：作业的镜像，也用它来构建。",
    "What it is for, in a line.": "用途，一行说明。",
    "Whether to wait for the end of the build; default: yes.": "是否等待构建结束；默认等待。",
    "Show an environment: what was asked for, what is in it, and which jobs use it.": (
        "显示一个环境：要求是什么，其中有什么，哪些作业在使用它。"
    ),
    "Show what the newest build of an environment wrote.": "显示一个环境最近一次构建的输出。",
    "until the build has ended": "直到构建结束",
    "Go on until the build has ended.": "持续显示，直到构建结束。",
    "Delete environments with their files. One that a job uses which has not ended is refused.": (
        "删除环境及其文件。若有尚未结束的作业在使用，则拒绝删除。"
    ),
    "The environment to run in, as `oarsman env list` shows them.": "作业所用的环境，见 `oarsman env list`。",
    "Shell commands that run before the job starts.": "作业启动前运行的 shell 命令。",
    "PACKAGES": "软件包",
    "SIZE": "大小",
    "JOBS": "作业",
    "Size": "大小",
    "Description": "说明文字",
    "Owner": "所有者",
    "Built": "构建时间",
    "Used by": "使用者",
    "no environments": "没有环境",
    "{name} could not be built: {why}": "{name} 构建失败：{why}",
    "{name} is ready: Python {python}, {count} packages": "{name} 已就绪：Python {python}，{count} 个软件包",
    "{name} is being built; `oarsman env log {name} -f` shows how it goes": (
        "正在构建 {name}；用 `oarsman env log {name} -f` 查看进展"
    ),
}
