{{/* Names. */}}

{{- define "oarsman.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "oarsman.fullname" -}}
{{- $name := include "oarsman.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 48 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 48 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 48 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "oarsman.namespace" -}}
{{- default .Release.Namespace .Values.namespace.name -}}
{{- end -}}

{{- define "oarsman.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "oarsman.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "oarsman.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "oarsman.kubectlDeliveryImage" -}}
{{- default (printf "oarsman/kubectl-delivery:%s" .Chart.AppVersion) .Values.kubectlDelivery.image -}}
{{- end -}}

{{/* Labels: those that select the pods never change from one version to the next. */}}

{{- define "oarsman.selector" -}}
app.kubernetes.io/name: {{ include "oarsman.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "oarsman.labels" -}}
{{ include "oarsman.selector" . }}
app.kubernetes.io/component: mpijob
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end -}}

{{- define "oarsman.podLabels" -}}
{{ include "oarsman.selector" . }}
app.kubernetes.io/component: mpijob
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{/* The pod's security context. The field seccompProfile came with Kubernetes 1.19; before, there was an annotation. */}}

{{- define "oarsman.hasSeccompField" -}}
{{- if semverCompare ">=1.19.0-0" .Capabilities.KubeVersion.Version -}}yes{{- end -}}
{{- end -}}

{{- define "oarsman.podSecurityContext" -}}
{{- if include "oarsman.hasSeccompField" . -}}
{{- toYaml .Values.podSecurityContext -}}
{{- else -}}
{{- toYaml (omit .Values.podSecurityContext "seccompProfile") -}}
{{- end -}}
{{- end -}}

{{- define "oarsman.seccompAnnotation" -}}
{{- if and .Values.podSecurityContext.seccompProfile (not (include "oarsman.hasSeccompField" .)) -}}
seccomp.security.alpha.kubernetes.io/pod: runtime/default
{{- end -}}
{{- end -}}

{{/* Values that contradict each other. Included once, by the Deployment. */}}

{{- define "oarsman.check" -}}
{{- if and (not .Values.leaderElection.enabled) (gt (int .Values.replicaCount) 1) -}}
{{- fail (printf "replicaCount is %d but leaderElection.enabled is false: several operators without a leader would fight over every job. Set replicaCount to 1 or leaderElection.enabled to true." (int .Values.replicaCount)) -}}
{{- end -}}
{{- $namespace := include "oarsman.namespace" . -}}
{{- if and .Values.watchNamespaces .Values.namespace.create (ne $namespace .Release.Namespace) -}}
{{- fail (printf "with watchNamespaces the chart makes nothing cluster-wide, so it cannot create the namespace %s. Set namespace.name to %s to run the operator in the release's namespace, or namespace.create to false if %s is already there." $namespace .Release.Namespace $namespace) -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor.enabled (not (and .Values.metrics.enabled .Values.metrics.service.enabled)) -}}
{{- fail "metrics.serviceMonitor.enabled needs metrics.enabled and metrics.service.enabled: a ServiceMonitor finds the pods through the Service." -}}
{{- end -}}
{{- if and .Values.metrics.enabled .Values.metrics.authentication (eq (int .Values.metrics.port) (int .Values.health.port)) -}}
{{- fail "metrics.port is health.port: probes are plain and metrics with authentication are not. Choose another metrics.port." -}}
{{- end -}}
{{- end -}}
