"""The job index of Simplified Chinese: the console, its accounts and tokens."""

from __future__ import annotations

CONSOLE = {
    "Console": "控制台",
    "Verbs": "子命令",
    "Say who may log in to the console of this machine, and in which role. Without any account, the console is "
    "opened by a link that is printed on the terminal. A running server sees changes at once.\n\n"
    "A viewer sees all jobs and changes nothing; a user sees and changes only their own; an admin may do everything.": (
        "管理谁可以登录本机的控制台，以及以何种角色登录。没有任何账户时，用终端上打印的链接打开控制台。"
        "正在运行的服务器会立即看到改动。\n\n"
        "viewer 可以查看所有作业，但不能改动；user 只能查看和改动自己的作业；admin 可以做任何事。"
    ),
    "asks for the password twice": "会询问两次密码",
    "a user, in a script": "在脚本中创建一个 user",
    "in a script": "在脚本中",
    "for programs": "供程序使用",
    "until `oarsman users enable ben`": "直到执行 `oarsman users enable ben`",
    "sees all jobs, changes nothing": "可以查看所有作业，但不能改动",
    "Read the password from the first line of standard input.": "从标准输入的第一行读取密码。",
    "What they may do: viewer, user (default), admin.": "可以做什么：viewer、user（默认）、admin。",
    "Make an account. The password is asked for twice, and not shown.": "创建账户。密码会询问两次，且不显示。",
    "List the accounts with their roles.": "列出账户及其角色。",
    "Remove an account with its sessions and tokens. Its jobs stay; the last admin cannot be removed.": (
        "删除账户及其会话和令牌。它的作业会保留；最后一个 admin 不能删除。"
    ),
    "Give an account a new password. Whoever is logged in to it is logged out; its tokens stay.": (
        "为账户设置新密码。已登录的会话会被注销；令牌保留。"
    ),
    "Give an account another role, from its next request on.": "更改账户的角色，从它的下一个请求起生效。",
    "Keep an account from coming in. Its sessions end; its tokens do nothing until it is enabled again.": (
        "禁止账户登录。它的会话会结束；在重新启用之前，它的令牌不起作用。"
    ),
    "Let a disabled account come in again, with its old password and tokens.": (
        "重新启用被禁用的账户，原来的密码和令牌继续有效。"
    ),
    "{name} can log in, as {role}": "{name} 可以登录，角色为 {role}",
    "{name} has the role {role}": "{name} 的角色为 {role}",
    "{name} is removed": "{name} 已删除",
    "{name} has a new password": "{name} 已有新密码",
    "{name} is disabled": "{name} 已禁用",
    "{name} is enabled": "{name} 已启用",
    "disabled": "已禁用",
    "enabled": "已启用",
    "no accounts: the console is opened by a link, which `oarsman tokens link` prints": (
        "没有账户：控制台通过链接打开，`oarsman tokens link` 可打印链接"
    ),
    "Password": "密码",
    "Once more": "再输入一次",
    "the two passwords are not the same": "两次输入的密码不一致",
    "there is no terminal to ask for a password": "没有可以询问密码的终端",
    "use --password-stdin": "请使用 --password-stdin",
    "passwords need {name}, which is not installed": "密码功能需要 {name}，但没有安装",
    "install it with: pip install 'oarsman[console]'": "安装方法：pip install 'oarsman[console]'",
    "Make and revoke API tokens of the console of this machine, and print links that open it once. A token may "
    "do what its owner may; without --user that is everything, as this machine is yours.": (
        "创建和吊销本机控制台的 API 令牌，并打印只能打开一次的链接。令牌的权限与其所有者相同；"
        "不写 --user 时拥有全部权限，因为这台机器是您的。"
    ),
    "for a program; the secret is printed once": "供程序使用；密钥只打印一次",
    "from now on it is refused": "从现在起它会被拒绝",
    "to open in a browser within ten minutes": "请在十分钟内用浏览器打开",
    "that may do what ben may": "权限与 ben 相同",
    "Make a token and print its secret. It is kept nowhere: what is lost has to be made anew.": (
        "创建令牌并打印其密钥。密钥不会保存：丢失后只能重新创建。"
    ),
    "What it is for, to recognise it in the list.": "用途说明，便于在列表中辨认。",
    "Valid for so many days; default: for ever.": "有效天数；默认永久。",
    "Whose it is: an account; default: you, as the owner of this machine.": (
        "令牌属于哪个账户；默认属于您，即本机的主人。"
    ),
    "a note has at most {n} characters": "说明最多 {n} 个字符",
    "It is shown only now. Programs send it as: Authorization: Bearer {begin}...": (
        "它只显示这一次。程序这样发送：Authorization: Bearer {begin}..."
    ),
    "List the tokens; their secrets are not known any more.": "列出令牌；其密钥已无从得知。",
    "Revoke tokens: from their next request on they are refused.": "吊销令牌：从下一个请求起会被拒绝。",
    "Print a link that opens the console once, as the owner of this machine. It is good for ten minutes.": (
        "打印一个链接，以本机主人的身份打开控制台一次。十分钟内有效。"
    ),
    "no console was ever started here": "这里从未启动过控制台",
    "start it with: oarsman serve": "启动方法：oarsman serve",
    "no tokens": "没有令牌",
    "{id} is revoked": "{id} 已吊销",
    "NOTE": "说明",
    "CREATED": "创建时间",
    "EXPIRES": "到期时间",
    "LAST USED": "上次使用",
}
