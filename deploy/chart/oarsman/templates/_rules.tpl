{{/*
What the operator may do where it looks after jobs: the rules of its ClusterRole, or of its Role in each namespace.
It has no verb that it does not use, watches nothing it can do without, and never lists secrets.
*/}}
{{- define "oarsman.rules" -}}
# The jobs: watch them, and delete them when their time to live is over. They are their authors' to change.
- apiGroups: [kubeflow.org]
  resources: [mpijobs]
  verbs: [get, list, watch, delete]
# Say what became of them.
- apiGroups: [kubeflow.org]
  resources: [mpijobs/status]
  verbs: [update]
# Own objects that block the deletion of their job; OpenShift asks for this right.
- apiGroups: [kubeflow.org]
  resources: [mpijobs/finalizers]
  verbs: [update]
# Workers, and launchers of v1 jobs.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, delete, patch]
# What a launcher still waits for when all its workers are up. Without this right, a failed start says less.
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
# The headless service that gives the pods of a job their names; it is made again if somebody deletes it.
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create, patch]
# Host file and discovery script.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch, create, patch]
# A job's SSH keys, NAME-ssh. A rule can name objects but not patterns, and the names of jobs are not known beforehand: so the
# right is for all secrets of a namespace, and watchNamespaces is what narrows it. Without list and watch, only a secret whose
# name is known can be read; without delete and update, none can be lost. They go with their job, which owns them.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, create, patch]
# Tell users what happened.
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
# Launchers.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, delete]
{{- if .Values.v1.enabled }}
# v1 jobs: a launcher reaches its workers by `kubectl exec`, under a service account of its own.
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [get, create]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [get, create, patch]
# Nobody can grant what he does not hold, and a v1 launcher's role has this right for its own workers.
- apiGroups: [""]
  resources: [pods/exec]
  verbs: [create]
{{- end }}
# One PodGroup per job, for the gang scheduler: volcano, scheduler-plugins, or Kubernetes' own. A job can choose one by annotation, whatever
# gangScheduling says.
- apiGroups: [scheduling.volcano.sh, scheduling.x-k8s.io, scheduling.k8s.io]
  resources: [podgroups]
  verbs: [get, create, patch, delete]
{{- if and .Values.gangScheduling (not .Values.watchNamespaces) }}
# What launcher and workers are worth, for the least resources of the gang. Cluster-wide objects: a Role cannot grant this.
- apiGroups: [scheduling.k8s.io]
  resources: [priorityclasses]
  verbs: [list]
{{- end }}
{{- end -}}
