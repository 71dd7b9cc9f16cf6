"""Every sentence that the sources hold has its Chinese: who changes one in English hears of it here.

Sentences are read from the sources themselves; what stands in a gap is a 7. A sentence that is put together from
several strings is a fragment there, and is tried for real in test_real_sentences.py.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from for_every import for_every

import oarsman
from oarsman.service.spoken import in_chinese
from service.spoken.latin import english_words

SOURCES = Path(oarsman.__file__).parent
SENTENCE = re.compile(r"[a-z]{2,}[ ,:]| [a-z]{2,}")

# What stands in a gap whose content is translated too; in all others a 7 does.
SAMPLES = {
    "plan/policies/barrier.py": {"waited": "2 min"},
    "plan/capacity/one_machine.py": {
        "asked": "2 CPUs",
        "way_out(gang, empty)": "; --oversubscribe starts it all the same",
        "named(name, need[name])": "2 CPUs",
    },
    "plan/capacity/hosts.py": {
        "who": "one worker",
        "has": "none has any",
        "have": "the hosts have",
        "_counted(gang)": "2 workers",
        "_no_host(party)": "no host with its labels has",
        "named(name, need[name])": "2 slots",
        "named(name, needs[name])": "1 GPU",
        "_amounts(need)": "2 slots and 1 GPU",
        "asked": "2 workers with 1 slot each",
        "fits": "1 fits now",
        "full": "node1 has 0 of 1 slot free",
        "reason": "the inventory has no hosts",
        "way_out(gang, empty)": "; --oversubscribe starts it all the same",
    },
    "plan/capacity/nodes.py": {
        "word": "worker",
        "named(name, amount)": "2 CPUs",
        "named(what, need)": "2 pods",
        "_some(gang, empty)": "1 of 2 workers",
        "_some(gang, ready)": "1 of 2 workers",
        "has": "no node has any",
        "_all_named(need)": "2 CPUs and 4 GiB of memory",
        "_all_named(party.need)": "2 CPUs and 4 GiB of memory",
        "held_by(_by_key(held, name), partial(plain, name), 'more jobs')": " (held by a/b: 1, c/d: 1 and 2 more jobs)",
        "allows": "the quota q of namespace n allows 3",
    },
    "status/messages.py": {"', '.join(changes)": "-x became --x"},
    "backends/kube/lookups.py": {
        "_INSTALL": "`oarsman install --image IMAGE` sets one up; `oarsman doctor --on kube` looks closer",
    },
    "engines/kube/environments.py": {"why": ": 7"},
    "service/preview.py": {"slots": "2 workers x 1 slot = 2 slots", "most": "to 4"},
    "manifest/rules.py": {"_sum(job)": "2 slots (1 launcher x 2 slotsPerWorker)", "name": "most"},
    "manifest/scalars.py": {"tag.removeprefix(_TAG)": "int"},
    "manifest/source.py": {"'mapping' if is_map else 'list'": "list", "what": "the text is not valid UTF-16"},
    "manifest/template.py": {"what": "volume"},
    "engines/hosts/ssh/inventory_hostfile.py": {"what": "a host name"},
    "engines/hosts/ssh/inventory_yaml.py": {"what": "the name of a label"},
    "engines/hosts/ssh/probe.py": {"said": "it said nothing"},
}

# Parts of longer sentences (tried in test_real_sentences.py), and strings that are no sentences at all.
FRAGMENTS = {
    "plan/capacity/amounts.py": {" (held by 77)", " and 7 7", "7 of 7", "CPU limit", "memory limits"},
    "plan/capacity/nodes.py": {
        " and ",
        "7 are free, but no node has",
        "7 of 7 worker7",
        "7 the 7 that the worker asks for",
        "more jobs",
        "no node has any",
        "no node has more than 7",
        "the quota 7 of namespace 7 allows 7",
    },
    "plan/capacity/placement.py": {"; --oversubscribe starts it all the same"},
    "plan/capacity/queue.py": {"a job of somebody else"},
    "plan/policies/barrier.py": {"it is 7"},
    "plan/capacity/hosts.py": {
        " and ",
        "1 fits now",
        "1 launcher",
        "1 launcher and 7",
        "1 launcher with 7",
        "2 slots and 1 GPU each",
        "2 workers with 7",
        "7 and 1 launcher with 7",
        "7 fit now",
        "7 has 7 of 7 free7",
        "7 has most: 7",
        "7 more worker7 with 7",
        "7 worker7",
        "7 worker7 with 7",
        "it does not fit now",
        "no host has",
        "no host with its labels has",
        "none fits now",
        "none has any",
        "one worker",
        "the hosts with its labels have",
        "the launcher",
        "the launcher and a worker",
        "the hosts have",
    },
    "plan/placement.py": {" (and 7 more)"},
    "engines/hosts/ssh/trust/trust.py": {"Host 7\n    IdentityFile 7\n", "exit 0\n"},
    "status/causes.py": {
        "rank 7 on 7",
        "a rank",
        "rank 7",
        " on 7",
        "called MPI_Abort with code 7",
        "failed (7)",
        "the launcher 7",
        "ended with code 255, as it does when a host or the daemon on it is lost",
        "it wrote nothing",
        "the launcher 7: 7",
    },
    "status/messages.py": {"7 min"},
    "control/environments.py": {"there is no"},
    "service/preview.py": {
        " because it is not told a number (-np)",
        "(7 + 1 launcher)",
        ", 7 on each host",
        "1 launcher",
        "7 starts 7",
        "2 workers x 1 slot = 2 slots; 7",
        "7, 7 more than there are: 7",
        "7, which fills them",
        "7, which leaves 7 free",
        "or more",
        "to 7",
        "it may start more than one per slot",
        "it would refuse to start",
    },
    "service/rights.py": {" what belongs to 7", "7 may not 77", "create jobs", "look around", "manage tokens"},
    "manifest/check.py": {
        "7, not 7",
        "the top level",
        "must be a list",
        "must be a mapping",
        "must be a string",
        "must be a whole number",
        "must be true or false",
    },
    "manifest/rules.py": {
        "1 launcher",
        "1 process",
        "7 processes",
        "7 7 (--host 7)",
        "7 7 (7 x 7 slotsPerWorker)",
        "7 asks for 7 but there 7 7",
        "7 asks for 7 per node but a node has 7 7",
    },
    "manifest/scalars.py": {"tag:yaml.org,2002:"},
    "engines/hosts/core/separation.py": {
        "7:/usr/sbin:/sbin",
        "link add oarsman0 type bridge",
        "link add oarsman1 type veth peer name oarsman2",
    },
    "engines/hosts/core/installed_mpi.py": {
        "(?:Open MPI\\)?|prterun \\(.*?\\)|PRRTE\\)?)\\s+v?(\\d+)((?:\\.\\d+)*)",
        "Version (\\S+)",
        "Version:\\s+(\\S+)",
        "pip install 'oarsman[7]'",
        "pip install impi-rt",
    },
    "engines/hosts/core/shims/rank.py": {"Open MPI", "command not found"},
    "engines/kube/observe.py": {
        "7no rank was started",
        "kubectl delete pod --force 7",
        "oarsman: ",
        "oarsman: memory limit reached on ",
    },
    "engines/kube/engine.py": {'"7" of Kind "7"', "oarsman: waiting for "},
    "backends/stored.py": {"Umask:"},
    "control/admission.py": {"the hosts of %s could not be asked"},
    "engines/hosts/ssh/transport.py": {'#!/bin/sh\nexec 7/bin/ssh "$@"\n'},
    "engines/hosts/ssh/mpi_choice.py": {"none at all"},
    "engines/hosts/ssh/interfaces.py": {"no network that is known"},
    "engines/hosts/ssh/code/copy.py": {
        "belongs to somebody else",
        "Directory not empty",
        "No space left on device|[Qq]uota exceeded",
        "Permission denied|Read-only file system",
    },
    "engines/hosts/ssh/code/tree.py": {
        " or more",
        "7 files and folders7; at most 7 are copied",
        "77; at most 7 are copied",
        "Permission denied",
        "the folder 7 is too large to be copied to the hosts: 7. Largest: 7",
    },
    "engines/hosts/ssh/inventory_hostfile.py": {
        "a number of slots",
        "a host name",
        "a port",
        "a user name",
        "the name of a network interface",
    },
    "engines/hosts/ssh/inventory_yaml.py": {
        "a host",
        "an inventory",
        "the name of a label has 7",
        "the name of a label",
        "the name of an environment variable",
    },
    "engines/hosts/ssh/probe.py": {"::ffff:", "it said 7", "it said nothing", "no answer in time"},
    "backends/kube/nodes.py": {"status.phase!=Succeeded,status.phase!=Failed"},
    "backends/kube/environments.py": {"namespaces "},
    "backends/kube/errors.py": {"namespaces "},
    "backends/kube/logs.py": {"; its status kept the last 7 lines"},
    "control/environment_build.py": {
        "import platform; print(platform.python_version())",
        "7 ended with 7",
        "7 failed: 7",
    },
    "backends/kube/environment_builds.py": {
        "not found",
        '\ncd "$OARSMAN_PLACE" || exit 1\nfor digest in $OARSMAN_DIGESTS; do '
        'rm -rf "$digest" "builds/$digest-"*; done\n',
    },
    "backends/kube/log_lines.py": {"7 is no place in a log of this job", "hand back what an earlier page said"},
    "manifest/form.py": {"an MPIJob is a mapping", "the form has no field '7'"},  # the console shows neither
    "manifest/fields.py": {
        "horovodrun -np 2 --min-np 1 --max-np 4 --host-discovery-script /etc/mpi/discover_hosts.sh ...",
    },
    "service/sweeps.py": {
        "sweep 7",
        "sweep %s is left as it is: %s",
        "sweep %s is left as it is",
        "sweep %s: %s; tried again",
    },
    "engines/hosts/ssh/trust/login.py": {
        "PreferredAuthentications=password,keyboard-interactive",
        "exit 0\n",
        "#!/bin/sh\ncase $1 in\n    *yes/no* | *assphrase* | *PIN*) exit 1 ;;\n    {wanted}) kill -0 {asker} && "
        'IFS= read -r answer <"${{0%/*}}/answer" && printf \'%s\\n\' "$answer" ;;\n    *) exit 1 ;;\nesac\n',
    },
    "service/job_index.py": {"following the jobs failed"},
    "job/sweep.py": {"--grid lr=0.1,0.01", "loss: ([0-9.]+)"},
    "console/security/saved_views.py": {
        "SELECT name, address FROM views WHERE account IS ?1 AND who = ?2 ORDER BY name",
        "INSERT INTO views (account, who, name, address) VALUES (?, ?, ?, ?)",
        "DELETE FROM views WHERE account IS ? AND who = ? AND name = ?",
    },
    "manifest/source.py": {
        "7 is not allowed in YAML",
        "a NUL character",
        "byte 0x7 is not UTF-8",
        "the control character U+7",
        "tag:yaml.org,2002:map",
        "tag:yaml.org,2002:seq",
        "the text is not valid UTF-16",
    },
    "manifest/template.py": {
        " and ",
        "7, not 7",
        "must be a list",
        "must be a mapping",
        "must be a string",
        "must be a whole number",
        "must be true or false",
        "text map",
    },
}
FILES = [
    "plan/reconcile.py",
    "plan/placement.py",
    "plan/policies/admission.py",
    "plan/policies/barrier.py",
    "plan/policies/deadline.py",
    "plan/policies/elastic.py",
    "plan/capacity/amounts.py",
    "plan/capacity/gang.py",
    "plan/capacity/hosts.py",
    "plan/capacity/nodes.py",
    "plan/capacity/one_machine.py",
    "plan/capacity/placement.py",
    "plan/capacity/queue.py",
    "plan/policies/replacement.py",
    "plan/policies/retry.py",
    "plan/policies/stop.py",
    "plan/policies/success.py",
    "plan/policies/suspend.py",
    "plan/policies/ttl.py",
    "status/causes.py",
    "status/messages.py",
    "status/stragglers.py",
    "control/environments.py",
    "backends/kube/environment_builds.py",
    "backends/kube/lookups.py",
    "engines/kube/environments.py",
    "engines/hosts/local/host_spec.py",
    "service/preview.py",
    "service/rights.py",
    "manifest/check.py",
    "manifest/load.py",
    "manifest/quantity.py",
    "manifest/rules.py",
    "manifest/scalars.py",
    "manifest/source.py",
    "manifest/template.py",
    "engines/hosts/core/job_agent.py",
    "engines/hosts/core/engine.py",
    "engines/hosts/daemon.py",
    "store/environments.py",
    "backends/kube/namespaces.py",
    "backends/kube/usage.py",
    "backends/kube/log_lines.py",
    "backends/local/supervisor_link.py",
    "backends/local/logs.py",
    "service/listing.py",
    "manifest/fields.py",
    "manifest/field_pairs.py",
    "manifest/form.py",
    "manifest/places.py",
    "engines/hosts/core/separation.py",
    "engines/hosts/core/installed_mpi.py",
    "engines/hosts/core/shims/rank.py",
    "engines/kube/observe.py",
    "engines/kube/engine.py",
    "backends/stored.py",
    "backends/kube/nodes.py",
    "backends/kube/backend.py",
    "backends/kube/environments.py",
    "backends/kube/errors.py",
    "backends/kube/logs.py",
    "control/environment_build.py",
    "store/paths.py",
    "job/sweep.py",
    "service/sweep_runs.py",
    "service/sweeps.py",
    "console/security/saved_views.py",
    "service/service.py",
    "service/job_index.py",
    "console/security/passwords.py",
    "console/security/throttle.py",
    "engines/hosts/ssh/trust/trust.py",
    "engines/hosts/ssh/trust/login.py",
    "engines/hosts/ssh/transport.py",
    "engines/hosts/ssh/mpi_choice.py",
    "engines/hosts/ssh/interfaces.py",
    "engines/hosts/ssh/host_facts.py",
    "engines/hosts/ssh/code/copy.py",
    "engines/hosts/ssh/code/tree.py",
    "engines/hosts/ssh/inventory_file.py",
    "engines/hosts/ssh/inventory_yaml.py",
    "engines/hosts/ssh/inventory_hostfile.py",
    "engines/hosts/ssh/probe.py",
    "control/admission.py",
    "backends/ssh/trial.py",
]


def sentences(file: str) -> Iterator[str]:
    samples = SAMPLES.get(file, {})
    tree = ast.parse((SOURCES / file).read_text())
    nodes = list(ast.walk(tree))
    skipped = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}  # docstrings
    skipped |= {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if id(node) in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            text = "".join(filled(part, samples) for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if SENTENCE.search(text):
            yield text


def filled(part: ast.expr, samples: Mapping[str, str]) -> str:
    if isinstance(part, ast.FormattedValue):
        return samples.get(ast.unparse(part.value), "7")
    assert isinstance(part, ast.Constant)
    return str(part.value)


@for_every(FILES)
def test_every_sentence_of_a_source_has_its_chinese(file: str) -> None:
    found = set(sentences(file))
    assert FRAGMENTS.get(file, set()) <= found, "a fragment that is there no more"
    spoken = {text: in_chinese(text) for text in sorted(found - FRAGMENTS.get(file, set()))}
    assert [text for text, said in spoken.items() if said == text] == []
    assert {said: english_words(said) for said in spoken.values() if english_words(said)} == {}
