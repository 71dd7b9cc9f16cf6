WORDS = {
    "Pages": "页面",
    "Overview": "概览",
    "Jobs": "作业",
    "Light or dark": "浅色或深色",
    "Log in": "登录",
    "This link was used before, or is older than ten minutes.": "此链接已使用过，或已超过十分钟。",
    "Name": "名称",
    "Password": "密码",
    "On this machine: `oarsman tokens link` prints a link that opens the console once.": (
        "在本机上：`oarsman tokens link` 会打印一个只能打开一次控制台的链接。"
    ),
}
