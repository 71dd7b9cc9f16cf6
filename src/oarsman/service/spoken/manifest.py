"""What is wrong with a manifest and what was probably meant, in Chinese. A message follows the name of its field."""

SENTENCES = {
    # -- any field -------------------------------------------------------------------------------------------
    "is required": "是必填的",
    "is required; write kind: {kind:word}": "是必填的；请写 kind: {kind}",
    "is required; accepted are {accepted:choice}": "是必填的；可以是 {accepted}",
    "is required: how many workers?": "是必填的：有多少个 Worker？",
    "must not be empty": "不能为空",
    "must not be negative": "不能为负数",
    "must be 1: a job has one launcher, not {given:n}": "必须为 1：一个作业只有一个启动器，不是 {given} 个",
    "must be at least {least:n}, not {given:value}": "至少为 {least}，不能是 {given}",
    "must be at most {most:n}, not {given:value}": "最多为 {most}，不能是 {given}",
    "must be {kind:kind}, not {given:value}": "必须是 {kind}，不能是 {given}",
    "must be a quantity such as 2, 500m or 4Gi": "必须是数量，例如 2、500m 或 4Gi",
    "must have at least one container": "必须至少有一个容器",
    "unknown field {name:value}": "未知的字段 {name}",
    "unknown annotation {name:value}": "未知的注解 {name}",
    "unknown replica type {name:value}; there are Launcher and Worker": (
        "未知的副本类型 {name}；只有 Launcher 和 Worker"
    ),
    "{given:value} is not one of {allowed:choice}": "{given} 不在可选值之中：{allowed}",
    "{given:value} is not accepted; it must be {kind:word}": "不接受 {given}；必须是 {kind}",
    "{given:value} is not accepted; accepted are {accepted:choice}": "不接受 {given}；可以是 {accepted}",
    "{given:value} is no longer accepted; accepted are {accepted:choice}": "不再接受 {given}；可以是 {accepted}",
    "is not valid: {why}": "无效：{why}",
    "a manifest must be a mapping, not {given:value}": "清单必须是映射，不能是 {given}",
    "there is no MPIJob here: the text is empty": "这里没有 MPIJob：文本是空的",
    "another job of this text is already called {name:value}": "此文本中已有另一个作业叫 {name}",
    # -- values with a form of their own ---------------------------------------------------------------
    "{given:value} cannot name hosts: it must start with a lower-case letter and hold only lower-case letters, digits "
    "and dashes, the last not a dash": (
        "{given} 不能用作主机名：必须以小写字母开头，只含小写字母、数字和短横线，且不以短横线结尾"
    ),
    "too long by {over:n}: the host {host:word} has {length:n} characters, and {most:n} is the most": (
        "超长 {over} 个字符：主机 {host} 有 {length} 个字符，最多 {most} 个"
    ),
    "{given:value} is not a namespace: lower-case letters, digits and dashes, at most 63": (
        "{given} 不是命名空间：小写字母、数字和短横线，最多 63 个字符"
    ),
    "{given:value} is not a label name": "{given} 不是标签名",
    "{given:value} is not a label value: letters, digits, '-', '_' and '.', at most 63": (
        "{given} 不是标签值：字母、数字、“-”、“_”和“.”，最多 63 个字符"
    ),
    "{given:value} is not a name: small letters, digits and '-', at most 63": (
        "{given} 不是名称：小写字母、数字和“-”，最多 63 个字符"
    ),
    "{given:value} is not a whole number": "{given} 不是整数",
    "{given:value} is not a number of seconds above 0": "{given} 不是大于 0 的秒数",
    "{given:value} is neither openmpi, mpich or intel nor a path": "{given} 既不是 openmpi、mpich 或 intel，也不是路径",
    "{given:value} is not a {what:what} name: lower-case letters, digits and dashes, at most 63": (
        "{given} 不是 {what} 名：小写字母、数字和短横线，最多 63 个字符"
    ),
    "{given:value} is not a name of a variable": "{given} 不是变量名",
    "another {what:what} already has the name {name:value}": "已有另一个 {what} 叫 {name}",
    "{given:value} is not a quantity such as 2, 500m or 4Gi": "{given} 不是数量，数量例如 2、500m 或 4Gi",
    "{given:value} is more than Kubernetes can count (2^63 - 1)": "{given} 超过 Kubernetes 能表示的范围（2^63 - 1）",
    "the exponent {exponent:n} is out of range": "指数 {exponent} 超出范围",
    "{given:value} has the unknown suffix {suffix:value}; known are n u m k M G T P E and Ki Mi Gi Ti Pi Ei": (
        "{given} 的后缀 {suffix} 未知；已知的有 n u m k M G T P E 和 Ki Mi Gi Ti Pi Ei"
    ),
    # -- pods ------------------------------------------------------------------------------------------
    "has more than one kind: {kinds:choice}": "有多种类型：{kinds}",
    "has no value": "没有值",
    "has no kind, such as emptyDir: {{}} or hostPath": "没有类型，例如 emptyDir: {{}} 或 hostPath",
    "the pod has no volume {name:value}": "Pod 没有卷 {name}",
    "{path:value} is already mounted on": "{path} 已经挂载了别的卷",
    "value and valueFrom exclude each other": "value 和 valueFrom 不能同时使用",
    "has more than one source: {sources:choice}": "有多个来源：{sources}",
    "asks for {given:word}, more than the limit of {limit:word}": "要求 {given}，超过了上限 {limit}",
    "the {whose:word} has no container {name:value}; it has {known:choice}": "{whose} 没有容器 {name}；它有 {known}",
    "says {old:word}, but runPolicy.cleanPodPolicy says {new:word}": (
        "写的是 {old}，而 runPolicy.cleanPodPolicy 写的是 {new}"
    ),
    "waits for {least:n} pods, but the job has {all:n}": "要等 {least} 个 Pod，而作业只有 {all} 个",
    # -- the launch line -------------------------------------------------------------------------------
    "{launcher:word} must start at least 1 process, not {given:n}": "{launcher} 至少要启动 1 个进程，不能是 {given}",
    "{launcher:word} must allow at least 1 process, but at {bound:bound} {count:n} are asked for": (
        "{launcher} 至少要允许 1 个进程，而要求 {bound} {count} 个"
    ),
    "{launcher:word} asks for at least {low:n} but at most {high:n} processes": (
        "{launcher} 要求至少 {low} 个、但最多 {high} 个进程"
    ),
    "{launcher:word} starts {now:n} processes but wants at least {low:n}": (
        "{launcher} 启动 {now} 个进程，但要求至少 {low} 个"
    ),
    "{launcher:word} starts {now:n} processes but wants at most {high:n}": (
        "{launcher} 启动 {now} 个进程，但要求最多 {high} 个"
    ),
    "{launcher:word} waits for {low:n} processes but there are {slots:sum}": (
        "{launcher} 要等 {low} 个进程，但只有 {slots}"
    ),
    "{launcher:word} asks for {given:counts} but there is {slots:sum}": "{launcher} 要求 {given}，但只有 {slots}",
    "{launcher:word} asks for {given:counts} but there are {slots:sum}": "{launcher} 要求 {given}，但只有 {slots}",
    "{launcher:word} asks for {given:counts} per node but a node has {slots:counts}": (
        "{launcher} 要求每个节点 {given}，但一个节点只有 {slots}"
    ),
    # -- text that is no YAML --------------------------------------------------------------------------
    "not readable as YAML: {why}": "无法作为 YAML 读取：{why}",
    "the text is larger than {size:n} MiB, the most a manifest may have": "文本超过清单的上限 {size} MiB",
    "byte {byte:word} is not UTF-8; save the file as UTF-8": "字节 {byte} 不是 UTF-8；请将文件保存为 UTF-8",
    "the text is not valid UTF-16; save the file as UTF-8": "文本不是有效的 UTF-16；请将文件保存为 UTF-8",
    "a NUL character is not allowed in YAML": "YAML 中不允许 NUL 字符",
    "the control character {code:word} is not allowed in YAML": "YAML 中不允许控制字符 {code}",
    "a tab cannot indent YAML": "YAML 不能用制表符缩进",
    "a field name must be text": "字段名必须是文本",
    "a field name must be text, not nothing": "字段名必须是文本，不能为空",
    "a field name must be text, not {given:value}": "字段名必须是文本，不能是 {given}",
    "the field {name:value} is given twice; the first is on line {line:n}": (
        "字段 {name} 出现了两次；第一次在第 {line} 行"
    ),
    "a tag has no meaning here; leave it out": "这里的标记没有意义；请去掉",
    "nested more than {most:n} levels deep": "嵌套超过 {most} 层",
    "the alias *{anchor:word} names no anchor before it": "别名 *{anchor} 之前没有对应的锚点",
    "the alias *{anchor:word} stands inside the value it repeats": "别名 *{anchor} 位于它所重复的值之内",
    "<< merges mappings; this is not one": "<< 用于合并映射；这不是映射",
    "more than {most:n} values once every alias is written out": "展开所有别名后超过 {most} 个值",
    "{word:word} is not a number JSON can hold; quote it if it is text": (
        "{word} 不是 JSON 能表示的数；如果是文本请加引号"
    ),
    "the tag {tag:word} has no meaning in a manifest; leave it out": "标记 {tag} 在清单中没有意义；请去掉",
    "{word} starts with a zero, which some readers take as octal; leave it out, or quote it if it is text": (
        "{word} 以零开头，有些程序会当作八进制；请去掉零，如果是文本请加引号"
    ),
    "the number is too large; quote it if it is text": "数字太大；如果是文本请加引号",
    "{word:word} is too large for a 64-bit number; quote it if it is text": "{word} 超出 64 位整数；如果是文本请加引号",
    "{word:word} is too large a number; quote it if it is text": "{word} 数字太大；如果是文本请加引号",
    "{given:value} is not a {type:type}": "{given} 不是 {type}",
    "{first:known} (and {count:n} more)": "{first}（另有 {count} 处）",
    # -- hints -----------------------------------------------------------------------------------------
    "did you mean {word:value}?": "是不是想写 {word}？",
    "it belongs to the top level": "它应在最外层",
    "it belongs to a role of mpiReplicaSpecs": "它应在 mpiReplicaSpecs 的某个角色之下",
    "it belongs to {place:word}": "它应在 {place} 之下",
    "only {version:word} has this field": "只有 {version} 有这个字段",
    "quote it: {text}": "请加引号：{text}",
    "leave the quotes out: {text}": "请去掉引号：{text}",
    "leave the space out": "请去掉空格",
    "use spaces": "请使用空格",
    "start each item with a dash": "每一项请以短横线开头",
    "write {word:value} in quotes": "请给 {word} 加上引号",
    "write [sh, -c, '...'] for a shell line, or one list item per word": (
        "shell 命令行请写 [sh, -c, '...']，或者每个词一个列表项"
    ),
    "write {text}": "请写 {text}",
    "keep one of the two": "请只保留其中一个",
    "leave Worker out for a job that runs on the launcher alone": "只在启动器上运行的作业请去掉 Worker",
    "raise slotsPerWorker, add workers, or add --oversubscribe": (
        "请增大 slotsPerWorker，增加 Worker，或加上 --oversubscribe"
    ),
    "raise slotsPerWorker, or add --oversubscribe": "请增大 slotsPerWorker，或加上 --oversubscribe",
    "a host without a number has one slot; write host:slots": "没有写数量的主机只有一个槽位；请写 host:slots",
    "convert the manifest: change apiVersion to {version:word} and move backoffLimit and activeDeadlineSeconds under "
    "runPolicy": (
        "请转换清单：把 apiVersion 改为 {version}，并把 backoffLimit 和 activeDeadlineSeconds 移到 runPolicy 之下"
    ),
}
PIECES = {
    "kind": {
        "a whole number": "整数",
        "a string": "字符串",
        "true or false": "true 或 false",
        "a mapping": "映射",
        "a list": "列表",
        "a list of strings": "字符串列表",
    },
    "what": {"container": "容器", "volume": "卷"},
    "type": {"int": "整数", "float": "小数", "bool": "布尔值", "null": "空值"},
    "bound": {"least": "至少", "most": "最多"},
    "sum": {
        "{slots:counts} (1 launcher x {each:n} slotsPerWorker)": "{slots}（1 个启动器 x {each} slotsPerWorker）",
        "{slots:counts} ((1 launcher + {workers:counts}) x {each:n} slotsPerWorker)": (
            "{slots}（（1 个启动器 + {workers}）x {each} slotsPerWorker）"
        ),
        "{slots:counts} (--host {hosts})": "{slots}（--host {hosts}）",
        "{slots:counts} ({workers:counts} x {each:n} slotsPerWorker)": "{slots}（{workers} x {each} slotsPerWorker）",
    },
}
