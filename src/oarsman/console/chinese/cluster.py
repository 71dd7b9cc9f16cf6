WORDS = {
    "cluster": "集群用户",
    "The console acts with your own rights on the cluster, and never with more.": (
        "控制台只以您本人在集群中的权限操作，绝不会超出。"
    ),
    "Your token for the cluster": "您的集群令牌",
    "This prints one for a service account:": "以下命令会打印服务账号的令牌：",
    "Before Kubernetes 1.24:": "Kubernetes 1.24 之前：",
}
