"""What the console's log-in says, in Chinese."""

SENTENCES = {
    "{name:word} is the last admin": "{name} 是最后一个管理员",
    "make somebody else an admin first": "请先让别人成为管理员",
    "there is an account {name:word} already": "已有账户 {name}",
    "there is no account of that name": "没有这个名称的账户",
    "`oarsman users list` shows them": "`oarsman users list` 列出账户",
    "a name has at most 63 letters, digits and . _ @ -, and begins with a letter or a digit": (
        "名称最多 63 个字符，由字母、数字和 . _ @ - 组成，以字母或数字开头"
    ),
    "a password has {least:n} to {most:n} characters": "密码有 {least} 到 {most} 个字符",
    "three or four words that do not belong together are hard to guess and easy to remember": (
        "三四个互不相关的词，难猜又好记"
    ),
    "too many logins at the same time": "同时登录的人太多",
    "too many logins have failed": "登录失败次数太多",
    "try again in {seconds:n} seconds": "请在 {seconds} 秒后重试",
    "{name:word} has {count:n} tokens already": "{name} 已有 {count} 个令牌",
    "revoke those that are not used": "请撤销不用的令牌",
    "there is no such token": "没有这个令牌",
    "`oarsman tokens list` shows them": "`oarsman tokens list` 列出令牌",
    "`kubectl create token NAME` prints one for a service account": (
        "`kubectl create token NAME` 会为服务账户输出一个"
    ),
    "`oarsman tokens link` prints a link that opens the console once": (
        "`oarsman tokens link` 会输出一个可打开控制台一次的链接"
    ),
    "`oarsman tokens link` prints a new one": "`oarsman tokens link` 会输出一个新的",
    "a token has no session to end": "令牌没有可以结束的会话",
    "it has accounts, or a link opens it": "它有账户，或用链接打开",
    "log in with name and password, or send an API token": "请用名称和密码登录，或使用 API 令牌",
    "name or password is wrong": "名称或密码错误",
    "nobody is logged in": "没有登录",
    "only somebody who logged in with a password can change it": "只有用密码登录的人才能修改密码",
    "programs had better use an API token": "程序最好使用 API 令牌",
    "revoke it instead": "请改为撤销它",
    "the cluster does not accept this token": "集群不接受此令牌",
    "the cluster does not accept this token, or no longer": "集群不接受此令牌，或不再接受",
    "this is not the password so far": "这不是现在的密码",
    "this link was used before, or is older than ten minutes": "此链接已用过，或已超过十分钟",
    "this request does not come from a page of this server": "此请求不是来自本服务器的页面",
    "the name of a view has 1 to {most:n} characters that can be seen": "视图名称有 1 到 {most} 个可见字符",
    "there are {count:n} saved views already": "已有 {count} 个保存的视图",
    "delete one first": "请先删除一个",
    "this view asks for too much at once": "此视图的条件太多",
    "this server asks no cluster": "此服务器不使用集群",
}
