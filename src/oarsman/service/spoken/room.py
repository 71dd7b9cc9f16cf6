"""Whether there is room: the queue of one machine, the nodes and quotas of a cluster; in Chinese."""

SENTENCES = {
    "needs {need:amount}, {free:plain} of {whole:plain} are free{held:held?}": (
        "需要 {need}，共 {whole}，空闲 {free}{held}"
    ),
    "asks for {asked:amount}, the machine has {whole:plain}": "要求 {asked}，本机只有 {whole}",
    "waits behind {who:waiter}, which has waited {minutes:n} min": "排在 {who} 之后，后者已等待 {minutes} 分钟",
    # -- a cluster -----------------------------------------------------------------------------------------
    "this user may not see the nodes; whether there is room is not known": "此用户不能查看节点；不知道是否有资源",
    "this user may not see what runs on the nodes; whether there is room now is not known": (
        "此用户不能查看节点上运行了什么；不知道现在是否有资源"
    ),
    "the cluster has no nodes": "集群没有节点",
    "no node is ready": "没有就绪的节点",
    "no node takes the {role:role}: none has the labels and taints that its template allows for": (
        "没有节点接受 {role}：没有一个节点的标签和污点符合它的模板"
    ),
    "no node that is ready takes the {role:role}": "没有就绪的节点接受 {role}",
    "needs {need:amount}, all nodes together have {whole:plain}": "需要 {need}，所有节点加起来只有 {whole}",
    "even with nothing else on them, the nodes have room for {placed:n} of {all:counted}": (
        "即使没有别的作业，这些节点也只放得下 {all} 中的 {placed} 个"
    ),
    "the {role:role} asks for {need:amount}, no node has any": "{role} 要求 {need}，没有节点有",
    "the {role:role} asks for {need:amount}, no node has more than {most:plain}": (
        "{role} 要求 {need}，单个节点最多只有 {most}"
    ),
    "no node has {needs:amounts} together, which the {role:role} asks for": "没有节点同时有 {role} 要求的 {needs}",
    "no node has {needs:amounts} free at the same time, which the {role:role} asks for": (
        "没有节点同时空闲 {role} 要求的 {needs}"
    ),
    "{free:amount} are free, but no node has the {need:plain} that the {role:role} asks for": (
        "共空闲 {free}，但没有一个节点有 {role} 要求的 {need}"
    ),
    "there is room for {placed:n} of {all:counted}: what is free is scattered over the nodes": (
        "只放得下 {all} 中的 {placed} 个：空闲资源分散在各节点上"
    ),
    "needs {need:amount}, the quota {quota:word} of namespace {space:word} allows {hard:plain} "
    "and {left:plain} of it are left": "需要 {need}，命名空间 {space} 的配额 {quota} 允许 {hard}，还剩 {left}",
    "needs {need:amount}, the quota {quota:word} of namespace {space:word} allows {hard:plain}": (
        "需要 {need}，命名空间 {space} 的配额 {quota} 只允许 {hard}"
    ),
}
PIECES = {
    "amount": {
        "{n:n} CPU": "{n} 个 CPU",
        "{n:n} CPUs": "{n} 个 CPU",
        "{n:n} GPU": "{n} 个 GPU",
        "{n:n} GPUs": "{n} 个 GPU",
        "{n:n} slot": "{n} 个槽位",
        "{n:n} slots": "{n} 个槽位",
        "{n:n} pod": "{n} 个 Pod",
        "{n:n} pods": "{n} 个 Pod",
        "{n:n} CPU limit": "{n} 个 CPU 的上限",
        "{n:n} CPU limits": "{n} 个 CPU 的上限",
        "{n:n} GiB of memory": "{n} GiB 内存",
        "{n:n} GiB of memory limits": "{n} GiB 内存上限",
        "{n:n} GiB of ephemeral-storage": "{n} GiB 临时存储",
        "{n:n} GiB of {what:word}": "{n} GiB {what}",
        "{n:n} {what:word}": "{n} 个 {what}",
    },
    "held": {" (held by {holders:holders})": "（占用：{holders}）"},
    "waiter": {"a job of somebody else": "别人的一个作业", "{key:word}": "{key}"},
    "role": {"launcher": "启动器", "worker": "Worker"},
    "counted": {"{n:n} launcher": "{n} 个启动器", "{n:n} worker": "{n} 个 Worker", "{n:n} workers": "{n} 个 Worker"},
}
