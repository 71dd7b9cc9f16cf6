"""What is in the way of trust between hosts, in Chinese."""

SENTENCES = {
    "{host:word}: it has no {programs}": "{host}：缺少 {programs}",
    "{host:word}: its ssh files change all the time": "{host}：它的 ssh 文件一直在变化",
    "files in the ssh folder of this machine change all the time": "本机 ssh 目录中的文件一直在变化",
    "try again": "请再试一次",
    "{host:word} did not take part": "{host} 没有参与",
    "{host:word} said nothing about {other:word}": "{host} 没有说明 {other} 的情况",
    "{host:word}: it did not show a host key": "{host}：它没有出示主机公钥",
    "{host:word}: {what:folder}": "{host}：{what}",
    "no key could be made: ssh-keygen failed": "无法生成密钥：ssh-keygen 失败",
    "its shell did not do what it was told": "它的 shell 没有按要求执行",
    "{files:labels} could not be written": "无法写入 {files}",
    "it does not let us read {files:labels}": "无法读取 {files}",
    "the public key {file} cannot be read: {why}": "无法读取公钥 {file}：{why}",
    "it is not text": "它不是文本",
    "{file} is no public key of OpenSSH": "{file} 不是 OpenSSH 公钥",
    "it is one line that begins with its kind": "公钥是以类型开头的一行",
}
PIECES = {
    "folder": {
        "no key could be made: ssh-keygen failed": "无法生成密钥：ssh-keygen 失败",
        "its shell did not do what it was told": "它的 shell 没有按要求执行",
        "{files:labels} could not be written": "无法写入 {files}",
        "it does not let us read {files:labels}": "无法读取 {files}",
    },
    "labels": {"{one:word}, {more}": "{one}, {more}", "{one:word}": "{one}"},
}
