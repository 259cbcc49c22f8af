{{- define "sluice.name" -}}
{{ .Values.nameOverride | default .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "sluice.operator" -}}
{{ include "sluice.name" . }}-operator
{{- end }}

{{- define "sluice.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "sluice.selector" -}}
app.kubernetes.io/name: sluice
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "sluice.labels" -}}
{{ include "sluice.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: sluice
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The operator's configuration file; its authority is operator/config.h. */}}
{{- define "sluice.config" -}}
image: {{ include "sluice.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
watchNamespaces: {{ .Values.watchNamespaces | toJson }}
decisionIntervalSeconds: {{ .Values.decisionIntervalSeconds }}
bindAddress: 0.0.0.0:8080
leaderElection:
  enabled: {{ .Values.leaderElection.enabled }}
  namespace: {{ .Release.Namespace }}
  name: {{ include "sluice.operator" . }}
  leaseSeconds: {{ .Values.leaderElection.leaseSeconds }}
  renewSeconds: {{ .Values.leaderElection.renewSeconds }}
  retrySeconds: {{ .Values.leaderElection.retrySeconds }}
metrics:
{{ toYaml .Values.metrics | indent 2 }}
scheduler:
{{ toYaml .Values.scheduler | indent 2 }}
{{- end }}
