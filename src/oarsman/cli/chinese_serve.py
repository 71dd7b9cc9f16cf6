"""The job index of Simplified Chinese: `oarsman serve`."""

from __future__ import annotations

SERVE = {
    "Serve the console and its REST API. By default only this machine can reach it, and a link is printed that opens "
    "it once. Where others can reach it, it needs TLS and accounts. Ctrl-C ends it; jobs go on.": (
        "提供控制台及其 REST API。默认只有本机可以访问，并打印一个只能打开一次的链接。"
        "若他人也能访问，则需要 TLS 和账户。按 Ctrl-C 结束；作业继续运行。"
    ),
    "for others, who log in": "供他人登录使用",
    "the jobs of a cluster": "集群中的作业",
    "The address to listen on; default 127.0.0.1.": "监听的地址；默认 127.0.0.1。",
    "The port to listen on; default 8470, 0: any that is free.": "监听的端口；默认 8470，0 表示任一空闲端口。",
    "The certificate for TLS, in PEM.": "TLS 证书，PEM 格式。",
    "Its key, if it is in a file of its own.": "证书的私钥，若在单独的文件中。",
    "Allow others to reach it without TLS, because something else has it.": (
        "允许他人不经 TLS 访问，因为已由别处加密。"
    ),
    "A name by which browsers reach it, through a proxy or DNS; can be repeated.": (
        "浏览器经代理或 DNS 访问它时所用的名称；可重复。"
    ),
    "Where jobs run that mention no folder; default: here.": "未写明目录的作业在哪里运行；默认为当前目录。",
    "Log every request.": "记录每个请求。",
    "the console needs {name}, which is not installed": "控制台需要 {name}，但它没有安装",
    "install it with: pip install 'oarsman[console]'": "安装方法：pip install 'oarsman[console]'",
    "the console answers at {address}": "控制台地址：{address}",
    "this link opens it once, within ten minutes: {link}": "此链接十分钟内可打开一次：{link}",
    "the console has ended; jobs go on": "控制台已结束；作业继续运行",
}
