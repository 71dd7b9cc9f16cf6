"""What is wrong with the file that names the hosts, in Chinese. A message may follow the name of its field."""

SENTENCES = {
    # -- a hostfile -------------------------------------------------------------------------------------------
    "a line starts with the name of a host": "每行以主机名开头",
    "write name slots=8": "请写成 'node1 slots=8' 的形式",
    "leaving a host out with ^ is not understood here": "这里不能用 ^ 排除主机",
    "leave out its line": "请删去它那一行",
    "hosts counted with + are not understood here": "这里不能用 + 按序号指定主机",
    "write the name of the host": "请写出主机名",
    "{given:value} is not understood after the name of a host": "主机名之后不能写 {given}",
    "write one host per line": "每行请只写一台主机",
    "{given:value} is not understood in a hostfile": "hostfile 中不能写 {given}",
    "a hostfile has slots, max_slots and username; port, key, jump and more are fields of the YAML form": (
        "hostfile 中可以写 slots、max_slots 和 'username'；'port'、'key'、'jump' 等要用 YAML 写法"
    ),
    "is given twice": "出现了两次",
    "slots={slots:n} is more than max_slots={most:n}": "slots={slots} 大于 max_slots={most}",
    "{name:value} has the user {user:value} on line {line:n}": "第 {line} 行写的 {name} 的用户是 {user}",
    # -- YAML -------------------------------------------------------------------------------------------------
    "an inventory is one document": "主机清单只能是一个文档",
    "leave out what starts with ---": "请删去 '---' 之后的内容",
    "an inventory is a mapping with hosts, or a list of hosts, not {given:value}": (
        "主机清单应是含有 'hosts' 的映射，或主机的列表，不能是 {given}"
    ),
    "start each host with '- '": "每台主机请以 '- ' 开头",
    "another host is called {name:value}, on line {line:n}": "第 {line} 行已有另一台主机叫 {name}",
    "must be a name or a mapping, not {given:value}": "必须是名称或映射，不能是 {given}",
    "is each host's own": "每台主机各不相同",
    "write it with the host": "请写在主机之下",
    "{what:holder} has {names:choice}": "{what} 的字段有：{names}",
    "leave the quotes out": "请去掉引号",
    "must be from {least:n} to {most:n}, not {given:n}": "必须在 {least} 到 {most} 之间，不能是 {given}",
    "must be more than nothing, not {given:value}": "必须大于零，不能是 {given}",
    "leave it out to have the host asked": "不写则询问主机",
    "must not have a NUL character": "不能含有 NUL 字符",
    "{given:value} is not {what:called}": "{given} 不是 {what}",
    # -- words ------------------------------------------------------------------------------------------------
    "{what:called} is missing": "缺少 {what}",
    "{given:value} is not {what:called}: it has {bad:value}": "{given} 不是 {what}：其中有 {bad}",
    "{given:value} is not {what:called}: it starts with a dot": "{given} 不是 {what}：它以点开头",
    "{given:value} is not {what:called}: ssh would take it as an option": "{given} 不是 {what}：ssh 会把它当作选项",
    "{given:value} is not {what:called}: a whole number from {least:n} to {most:n}": (
        "{given} 不是 {what}：应为 {least} 到 {most} 的整数"
    ),
    "{given:value} is neither a host name nor an IPv6 address": "{given} 既不是主机名，也不是 IPv6 地址",
    "slots and port have fields of their own": "槽位数和端口有各自的字段",
    "write each host by itself": "请把每台主机分开写",
    "{given:value} is not a range of addresses such as 10.0.0.0/24": "{given} 不是网段，网段例如 10.0.0.0/24",
    "{given:value} has {bad:value}, which a shell on the host could take as its own": (
        "{given} 中有 {bad}，主机上的 shell 可能另作解释"
    ),
    "must start with / or ~/, not {given:value}": "必须以 / 或 ~/ 开头，不能是 {given}",
    "must start with /, not {given:value}: it is the same path on every machine": (
        "必须以 / 开头，不能是 {given}：它在每台机器上是同一路径"
    ),
    "{given:value} is not the path of a file": "{given} 不是文件路径",
}
PIECES = {
    "called": {
        "a host name": "主机名",
        "a user name": "用户名",
        "a port": "端口",
        "a number of slots": "槽位数",
        "the name of a network interface": "网卡名",
        "the name of a label": "标签名",
        "the name of an environment variable": "环境变量名",
    },
    "holder": {"an inventory": "主机清单", "a host": "主机", "defaults": "'defaults'"},
}
