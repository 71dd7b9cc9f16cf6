"""The job index of Simplified Chinese: clusters."""

from __future__ import annotations

KUBE = {
    "{option} needs --on kube": "{option} 要与 --on kube 同用",
    "The file that says how to reach the cluster.": "说明如何连接集群的文件。",
    "The context of the kubeconfig to use.": "使用 kubeconfig 中的哪个 context。",
    "Of every namespace; on a cluster the default is one.": "所有命名空间；在集群上默认只看一个。",
    "The container image; needed with --on kube.": "容器镜像；用 --on kube 时必须给出。",
    "a command on a cluster needs --image: the program and an MPI have to be in it": (
        "在集群上运行命令要给出 --image：镜像里要有程序和 MPI"
    ),
    "the operator": "operator",
    "the supervisor": "后台管理进程",
    "the cluster of your kubeconfig": "kubeconfig 所指的集群",
    "Bring MPIJobs to a Kubernetes cluster: their definition, rights, and the operator that runs them. "
    "Each object is named with what became of it. Doing it again brings all up to date.": (
        "在 Kubernetes 集群上安装 MPIJob：它的定义、权限，以及运行作业的 operator。"
        "逐个列出对象及其结果。再次执行即更新。"
    ),
    "on the cluster of your kubeconfig, with an image that you built and pushed": (
        "装到 kubeconfig 所指的集群，使用自己构建并推送的镜像"
    ),
    "on another cluster": "装到另一个集群",
    "only say what would be done": "只说明会做什么",
    "the objects, for another tool": "输出各对象，供其他工具使用",
    "Where the operator lives; default: mpi-operator.": "operator 所在的命名空间；默认 mpi-operator。",
    "The operator's image, with its tag; build and push one first.": "operator 的镜像，含标签；请先构建并推送。",
    "Take over what a Helm release brought.": "接管由 Helm release 安装的对象。",
    "Take away what a Helm release brought, too.": "也去掉由 Helm release 安装的对象。",
    "waits: {detail}": "正在等待：{detail}",
    "--image names an image that the cluster can pull": "用 --image 给出集群能够拉取的镜像",
    "An image with kubectl, for launchers of v1 jobs.": "含 kubectl 的镜像，供 v1 作业的 launcher 使用。",
    "Only jobs of these namespaces; default: all.": "只照看这些命名空间的作业；默认全部。",
    "Change nothing.": "不做任何改动。",
    "Do not wait until the operator runs.": "不等待 operator 运行起来。",
    "Wait no longer than this; default: 5m.": "最多等待多久；默认 5m。",
    "created": "已创建",
    "configured": "已更新",
    "unchanged": "没有变化",
    "would be created": "将会创建",
    "is there, and would be brought up to date": "已存在，将会更新",
    "deleted": "已删除",
    "was not there": "本来就没有",
    "kept": "保留",
    "starting, {detail} pods": "正在启动，Pod {detail}",
    "runs, {detail} pods": "已在运行，Pod {detail}",
    "Take the operator and its rights away from a cluster. The definition of MPIJobs stays, and every job with it; "
    "with --with-crd both go, and what runs ends.": (
        "从集群上去掉 operator 及其权限。MPIJob 的定义和所有作业都保留；"
        "加 --with-crd 则一并删除，运行中的作业随之结束。"
    ),
    "the operator alone": "只去掉 operator",
    "Delete the definition of MPIJobs too, and so every job.": "连同 MPIJob 的定义一起删除，所有作业随之删除。",
    "this takes the operator away and asks first": "此操作会去掉 operator，需要先确认",
    "--yes answers the question": "--yes 表示同意",
    "Take the operator away from {server}? Type yes": "从 {server} 去掉 operator？输入 yes 确认",
    "Take the operator and {count} jobs away from {server}? Type yes": (
        "从 {server} 去掉 operator 和 {count} 个作业？输入 yes 确认"
    ),
    "yes": "是",
}
