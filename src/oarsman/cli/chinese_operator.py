"""The job index of Simplified Chinese: the operator."""

from __future__ import annotations

OPERATOR = {
    "Look after the MPIJobs of a Kubernetes cluster. This is what runs in the operator's pod; of several, one acts "
    "and the others stand by. SIGTERM lets the turns under way finish and hands over at once.\n\n"
    "The flags of the MPI Operator are understood as they are, with one dash or two; those of its logging have no "
    "effect, except that -v=4 and more means --log-level debug.": (
        "照看 Kubernetes 集群中的 MPIJob。operator 的 Pod 里运行的就是它；有多个时，一个工作，其余待命。"
        "收到 SIGTERM 后先完成正在进行的处理，随即交班。\n\n"
        "MPI Operator 的参数可照原样使用，一个或两个短横线都行；其日志参数不起作用，"
        "只有 -v=4 及以上等同于 --log-level debug。"
    ),
    "in a pod, or with your own kubeconfig": "在 Pod 中运行，或使用自己的 kubeconfig",
    "only these namespaces": "只照看这些命名空间",
    "as the MPI Operator is called": "照 MPI Operator 的写法",
    "Look after these namespaces only (also: KUBEFLOW_NAMESPACE); default: all.": (
        "只照看这些命名空间（也可设 KUBEFLOW_NAMESPACE）；默认全部。"
    ),
    "Schedule all pods of a job or none: volcano, or a scheduler with scheduler-plugins.": (
        "作业的 Pod 要么全部调度，要么都不调度：volcano，或带 scheduler-plugins 的调度器名。"
    ),
    "Write host names with this domain, such as cluster.local.": "主机名带上这个域名，例如 cluster.local。",
    "For v1 jobs: the image that brings kubectl to launchers.": "用于 v1 作业：给 launcher 带来 kubectl 的镜像。",
    "How long a launcher may wait for its workers; default 5m.": "launcher 最多等待 worker 多久；默认 5m。",
    "How to reach the cluster; default: KUBECONFIG, then the pod's own account.": (
        "如何连接集群；默认用 KUBECONFIG，其次是 Pod 自己的账户。"
    ),
    "Which context of that file; default: its current one.": "使用该文件中的哪个 context；默认为当前的。",
    "The API server's address, if another than the file's.": "API server 的地址，与文件所写不同时使用。",
    "Let one of several operators act; default. Without: there must be only one.": (
        "多个 operator 中只让一个工作；默认如此。关闭时必须只有一个。"
    ),
    "Where the lease lies that says who acts; default: the pod's own namespace.": (
        "决定由谁工作的 Lease 所在的命名空间；默认为 Pod 自己的命名空间。"
    ),
    "The name of that lease.": "该 Lease 的名称。",
    "Jobs that are worked on at the same time; default 16.": "同时处理的作业数；默认 16。",
    "Requests per second to the API server; default 0, no limit.": "每秒向 API server 发出的请求数；默认 0，不限。",
    "How many may exceed that at once; default: twice as many.": "允许的突发数量；默认为其两倍。",
    "Port of /healthz and /readyz; default 8080, 0: none.": "/healthz 和 /readyz 的端口；默认 8080，0 为关闭。",
    "Port of /metrics; default 8081, 0: none.": "/metrics 的端口；默认 8081，0 为关闭。",
    "The address of both ports; default: all.": "两个端口绑定的地址；默认全部。",
    "From which level on to log: debug, info (default), warning, error.": (
        "记录哪个级别以上的日志：debug、info（默认）、warning、error。"
    ),
    "How to log, one line each: text (default), json.": "日志格式，每条一行：text（默认）、json。",
    "{what} takes true or false": "{what} 只能是 true 或 false",
    "the operator needs {name}, which is not installed": "operator 需要 {name}，但没有安装",
    "install it with: pip install 'oarsman[kube]'": "安装方法：pip install 'oarsman[kube]'",
    "'{name}' is not the name of a namespace": "“{name}”不是命名空间的名称",
    "write --namespace team-a,team-b": "请写 --namespace team-a,team-b",
}
