"""The job index of Simplified Chinese: `oarsman hosts trust`."""

from __future__ import annotations

HOSTS_TRUST = {
    "Let all hosts of an inventory log in to each other by ssh, set up from here. Says first what it will change, "
    "and asks. Each host makes a key pair of its own; host keys are pinned; a password is asked for only where no "
    "key opens a host. Run again, it adds what is missing. At the end every pair is tried.\n\n"
    "Only the folder ~/.ssh is changed: lines and blocks marked oarsman-trust, and the key pair id_oarsman. "
    "If the inventory names an sshConfig, then here that file and the known_hosts that it names are changed "
    "instead of your own. --undo removes exactly these.": (
        "让清单中的所有主机能用 ssh 互相登录，从本机统一设置。先说明将改动什么，再请求确认。每台主机生成自己的密钥对；"
        "主机公钥会被固定；只有在没有密钥可登录时才询问密码。再次运行只补上缺少的部分。最后逐对测试。\n\n"
        "只改动目录 ~/.ssh：带有 oarsman-trust 标记的行和配置块，以及密钥对 id_oarsman。"
        "如果主机清单写了 sshConfig，在本机改动的就是那个文件和它所指的 known_hosts，而不是您自己的。"
        "--undo 恰好移除这些。"
    ),
    "only say what would be changed": "只说明将改动什么",
    "one password opens all hosts": "所有主机用同一个密码",
    "a key of yours opens them later": "以后用您的密钥登录",
    "as it was before": "恢复原状",
    "Do not ask; host keys that are new here are accepted as they are.": "不询问；本机尚不认识的主机公钥直接接受。",
    "Change nothing, only say what would be changed.": "不做任何改动，只说明将改动什么。",
    "Remove what was set up, here and on all hosts.": "移除本机和所有主机上设置的内容。",
    "A public key of yours that is to open all hosts; default: one you have, or a new.": (
        "用于登录所有主机的公钥；默认为您已有的密钥，没有则新建。"
    ),
    "The password of all hosts is the first line of this file; -: of standard input.": (
        "所有主机的密码是此文件的第一行；- 表示标准输入。"
    ),
    "Ask once for a password that opens all hosts.": "只询问一次密码，用于所有主机。",
    "--undo removes every key that was installed; --key makes no sense with it": (
        "--undo 会移除所有安装的密钥；不能与 --key 同用"
    ),
    "there is no terminal to ask on": "没有可以询问的终端",
    "use --yes, or --dry-run to look first": "请使用 --yes，或先用 --dry-run 查看",
    "Change this?": "进行这些改动吗？",
    "nothing was changed": "没有做任何改动",
    "Host keys that are not known here yet:": "本机尚不认识的主机公钥：",
    "FINGERPRINT": "指纹",
    "Are these the keys of these hosts?": "这些确实是这些主机的公钥吗？",
    "wrong password for {names}": "{names} 的密码错误",
    "{names} cannot be logged in to with this password; nothing was changed": (
        "用此密码无法登录 {names}；没有做任何改动"
    ),
    "correct the password or the user, or leave the host out of the inventory": (
        "请更正密码或用户名，或从清单中去掉该主机"
    ),
    "{names} want a password, and there is no terminal to ask for it": "{names} 需要密码，但没有可以询问的终端",
    "use --password-file": "请使用 --password-file",
    "Password of {count} hosts": "{count} 台主机的密码",
    "Password of {login}": "{login} 的密码",
    "there is no password in {file}": "{file} 中没有密码",
    "Left out:": "未包括：",
    "{host}: others may write to {files}, so its sshd may ignore the keys; chmod go-w there": (
        "{host}：其他用户可写 {files}，其 sshd 可能因此忽略密钥；请在那里执行 chmod go-w"
    ),
    "{place}: its known_hosts has another key for {host}, which is left as it is; "
    "if {host} was installed anew, run 'ssh-keygen -R {host}' there": (
        "{place}：其 known_hosts 中 {host} 的公钥不同，保持不变；若 {host} 已重装，请在那里运行 'ssh-keygen -R {host}'"
    ),
    "{host}: what other inventories set up stays: {marks}": "{host}：其他清单设置的内容保留：{marks}",
    "Will be changed in ~/.ssh:": "将在 ~/.ssh 中改动：",
    "nothing to do": "无需改动",
    "here": "本机",
    "  here, {name} is {file}": "  本机的 {name} 是 {file}",
    "made, without a passphrase": "新建，无口令",
    "deleted": "删除",
    "a block of ours: {count} hosts": "标记块：{count} 台主机",
    "our block removed": "移除标记块",
    "{count} lines added": "增加 {count} 行",
    "{count} lines of ours replaced": "替换 {count} 个标记行",
    "{count} lines removed": "移除 {count} 行",
    "Removed from ~/.ssh:": "已从 ~/.ssh 移除：",
    "A password would be asked for, and what changes there said after it: {names}": (
        "将询问密码，之后才能说明那里的改动：{names}"
    ),
    "not done: {names}; run it again with --undo when they can be reached. What is set up here is kept until then": (
        "未完成：{names}；待其可达时再用 --undo 运行一次。本机的设置保留到那时"
    ),
    "interrupted; nothing was changed": "已中断；没有做任何改动",
    "interrupted. Changed until then:": "已中断。此前的改动：",
    "run it again to go on, or with --undo to take it back": "再次运行可继续，加 --undo 可撤销",
    "{source} -> {target} fails: {why}": "{source} -> {target} 失败：{why}",
    "{good} of {count} logins work": "{count} 个登录中有 {good} 个成功",
    "left out: {why}": "未包括：{why}",
    "run it again when this is repaired: only what is missing is done": "修复后再次运行：只补上缺少的部分",
    "every login works: {count} of {count}": "全部登录成功：{count}/{count}",
    "no": "否",
    "FROM": "从",
    "{file} cannot be read: {reason}": "无法读取 {file}：{reason}",
}
