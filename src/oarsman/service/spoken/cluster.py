"""What the engine for Kubernetes says, in Chinese. What Kubernetes itself says is kept as it is."""

SENTENCES = {
    "its Job has made no pod yet; see kubectl describe job {name:word}": (
        "它的 Job 还没有创建 Pod；请看 kubectl describe job {name}"
    ),
    "it is going away from node {node:word}; if that is lost for good: {way}": (
        "它正在从节点 {node} 退出；如果该节点已永久失联：{way}"
    ),
    "node {node:word} does not answer": "节点 {node} 没有应答",
    "the start barrier ended with code {code:n}": "启动屏障以退出码 {code} 结束",
    "init container {name:word} ended with code {code:n}": "初始化容器 {name} 以退出码 {code} 结束",
    "init container {name:word} ended with code {code:n}: {said}": "初始化容器 {name} 以退出码 {code} 结束：{said}",
    "not scheduled: {why}": "未能调度：{why}",
    "its install commands have not ended": "它的安装命令还没有结束",
    "{kind:word} {name:word} of an earlier job is still going away": "先前作业的 {kind} {name} 还在退出",
    "{name:word} of an earlier attempt is still going away": "先前尝试的 {name} 还在退出",
    "{name:word} is still going away": "{name} 还在退出",
    "the API server refuses the {kind:word}: {why}": "API 服务器拒绝了 {kind}：{why}",
    "{annotation:word} needs the {role:role}'s command in the manifest: what the image starts is not known here": (
        "{annotation} 需要清单中写出 {role} 的命令：这里不知道镜像会启动什么"
    ),
    "no operator has looked at the job yet; {hint:known}": "还没有 operator 处理此作业；{hint}",
    "the operator ({holder:word}) has not looked at the job yet": "operator（{holder}）还没有处理此作业",
    "{holder:word} looks after jobs in {watched} alone, not in {space:word}; {hint:known}": (
        "{holder} 只处理 {watched} 中的作业，不处理 {space} 中的；{hint}"
    ),
    "no operator is running: {holder:word} has been silent for {silent:word}; {hint:known}": (
        "没有 operator 在运行：{holder} 已有 {silent} 没有动静；{hint}"
    ),
    "no operator seems to be running on this cluster; {hint:known}": "此集群上似乎没有 operator 在运行；{hint}",
    "`oarsman install --image IMAGE` sets one up; `oarsman doctor --on kube` looks closer": (
        "`oarsman install --image IMAGE` 会安装一个；`oarsman doctor --on kube` 可详细检查"
    ),
    "nothing was heard from it yet": "还没有它的消息",
    "somebody marked it: nothing new is placed on it": "有人标记了它：不会在它上面放置新的 Pod",
    "this cluster does not measure what pods use": "此集群不测量 Pod 的资源使用",
    "install the metrics server: metrics.k8s.io is missing": "请安装 metrics server：缺少 metrics.k8s.io",
}
