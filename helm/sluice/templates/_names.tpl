{{/* `helm upgrade --reuse-values` brings the values of an older chart alone: what they lack is filled in from this one's.
Queries from before metrics.namespaceLabel answer with another label than the operator reads, so none of them is kept. */}}
{{- define "sluice.complete" -}}
{{- $defaults := .Files.Get "files/values.yaml" | fromYaml }}
{{- $metrics := .Values.metrics | default dict }}
{{- if not (hasKey $metrics "namespaceLabel") }}{{ $_ := set $metrics "queries" $defaults.metrics.queries }}{{ end }}
{{- include "sluice.fill" (list .Values $defaults) }}
{{- end }}

{{/* Of a list of two maps, sets in the first what only the second has. */}}
{{- define "sluice.fill" -}}
{{- $values := index . 0 }}
{{- range $key, $default := index . 1 }}
{{- if not (hasKey $values $key) }}{{ $_ := set $values $key $default }}
{{- else if and (kindIs "map" $default) (kindIs "map" (get $values $key)) }}{{ include "sluice.fill" (list (get $values $key) $default) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "sluice.name" -}}
{{ .Values.nameOverride | default .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "sluice.operator" -}}
{{ include "sluice.name" . }}-operator
{{- end }}

{{- define "sluice.cache" -}}
{{ include "sluice.name" . }}-cache
{{- end }}

{{- define "sluice.image" -}}
{{ with .Values.image.registry }}{{ trimSuffix "/" . }}/{{ end }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* A name of the cluster, not of a namespace: releases of one name in two namespaces need `name`. */}}
{{- define "sluice.workerPriorityClass" -}}
{{- with .Values.workers.priorityClass }}{{ .name | default (.create | ternary (printf "%s-workers" (include "sluice.name" $)) "") }}{{ end }}
{{- end }}

{{- define "sluice.architectures" -}}
{{ .Values.image.architectures | default (list "amd64") | toJson }}
{{- end }}

{{/* A node selector with a platform of the image's programs, unless it says these labels itself. */}}
{{- define "sluice.platform" -}}
{{ merge (deepCopy (default dict .selector)) (dict "kubernetes.io/arch" (include "sluice.architectures" .root | fromJsonArray | first) "kubernetes.io/os" "linux") | toYaml }}
{{- end }}

{{/* The argument of sluice-cache's --rooms, which checks it. */}}
{{- define "sluice.cacheRooms" -}}
{{- $rooms := list }}
{{- range $name, $room := .Values.cache.rooms }}
{{- $rooms = append $rooms (printf "%s:%d:%s%s" $name (int $room.percent) (join "," $room.namespaces) (ternary ":shared" "" (default false $room.shared))) }}
{{- end }}
{{- join ";" $rooms }}
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
{{- include "sluice.addedLabels" (list "commonLabels" .Values.commonLabels) }}
{{- end }}

{{/* Of a list of the value's name and its labels: those labels, each on a line of its own. */}}
{{- define "sluice.addedLabels" -}}
{{- $name := index . 0 }}
{{- range $key, $value := index . 1 }}
{{- if regexMatch "^(app\\.kubernetes\\.io|helm\\.sh)/" $key }}{{ fail (printf "%s: %s is a label that the chart sets itself. Take it out." $name $key) }}{{ end }}
{{ $key }}: {{ $value | quote }}
{{- end }}
{{- end }}

{{/* What metrics.connection mounts, as sources of a projected volume; empty: nothing. */}}
{{- define "sluice.prometheusFiles" -}}
{{- with .Values.metrics.connection }}
{{- with .bearerTokenSecret }}{{ if .name }}
- secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: token}]}
{{- end }}{{ end }}
{{- with .passwordSecret }}{{ if .name }}
- secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: password}]}
{{- end }}{{ end }}
{{- with .caSecret }}{{ if .name }}
- secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: ca.crt}]}
{{- end }}{{ end }}
{{- with .caConfigMap }}{{ if .name }}
- configMap: {name: {{ .name }}, items: [{key: {{ .key }}, path: ca.crt}]}
{{- end }}{{ end }}
{{- with .clientCertificateSecret }}
- secret: {name: {{ . }}, items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]}
{{- end }}
{{- end }}
{{- end }}

{{/* metrics.connection of the operator's configuration file, as JSON. */}}
{{- define "sluice.prometheusConnection" -}}
{{- $made := dict }}
{{- $folder := "/etc/sluice-prometheus" }}
{{- with .Values.metrics.connection }}
{{- if and .serviceAccountToken (dig "bearerTokenSecret" "name" "" .) }}
{{- fail "metrics.connection: set serviceAccountToken or bearerTokenSecret, not both: a request carries one token." }}
{{- end }}
{{- if and (dig "caSecret" "name" "" .) (dig "caConfigMap" "name" "" .) }}
{{- fail "metrics.connection: set caSecret or caConfigMap, not both." }}
{{- end }}
{{- if ne (empty .username) (empty (dig "passwordSecret" "name" "" .)) }}
{{- fail "metrics.connection: username and passwordSecret.name are needed together." }}
{{- end }}
{{- if and .username (or .serviceAccountToken (dig "bearerTokenSecret" "name" "" .)) }}
{{- fail "metrics.connection: set username and passwordSecret, or a token, not both." }}
{{- end }}
{{- $tls := or (dig "caSecret" "name" "" .) (dig "caConfigMap" "name" "" .) .clientCertificateSecret }}
{{- if and $tls (not (hasPrefix "https://" $.Values.metrics.url)) }}
{{- fail "metrics.connection: caSecret, caConfigMap and clientCertificateSecret need an https:// URL in metrics.url." }}
{{- end }}
{{- if .serviceAccountToken }}{{ $_ := set $made "bearerTokenFile" "/var/run/secrets/kubernetes.io/serviceaccount/token" }}{{ end }}
{{- if dig "bearerTokenSecret" "name" "" . }}{{ $_ := set $made "bearerTokenFile" (printf "%s/token" $folder) }}{{ end }}
{{- if .username }}{{ $_ := set $made "username" .username }}{{ end }}
{{- if dig "passwordSecret" "name" "" . }}{{ $_ := set $made "passwordFile" (printf "%s/password" $folder) }}{{ end }}
{{- if or (dig "caSecret" "name" "" .) (dig "caConfigMap" "name" "" .) }}{{ $_ := set $made "caFile" (printf "%s/ca.crt" $folder) }}{{ end }}
{{- if .clientCertificateSecret }}
{{- $_ := set $made "certificateFile" (printf "%s/tls.crt" $folder) }}
{{- $_ := set $made "keyFile" (printf "%s/tls.key" $folder) }}
{{- end }}
{{- if .serverName }}{{ $_ := set $made "serverName" .serverName }}{{ end }}
{{- if .proxyUrl }}{{ $_ := set $made "proxyUrl" .proxyUrl }}{{ end }}
{{- if .headers }}{{ $_ := set $made "headers" .headers }}{{ end }}
{{- end }}
{{- $made | toJson }}
{{- end }}

{{/* The operator's configuration file; its authority is operator/config.h. */}}
{{- define "sluice.config" -}}
image: {{ include "sluice.image" . | quote }}
architectures: {{ include "sluice.architectures" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
imagePullSecrets: {{ .Values.image.jobPullSecrets | toJson }}
bundle: {{ .Values.bundle.resources | toJson }}
workers:
  priorityClassName: {{ include "sluice.workerPriorityClass" . | quote }}
  networkPolicy: {enabled: {{ .Values.workers.networkPolicy.enabled }}}
watchNamespaces: {{ .Values.watchNamespaces | toJson }}
decisionIntervalSeconds: {{ .Values.decisionIntervalSeconds }}
metricsAddress: "[::]:8080"
probesAddress: "[::]:8081"
plan:
  address: "[::]:8082"
  reader: system:serviceaccount:{{ .Release.Namespace }}:{{ include "sluice.name" . }}-plan-reader
{{- with .Values.leaderElection }}
{{- if or (le (int .leaseSeconds) (int .renewSeconds)) (le (mul 10 (int .renewSeconds)) (mul 12 (int .retrySeconds))) }}
{{- fail "leaderElection: leaseSeconds must exceed renewSeconds, and renewSeconds 1.2 times retrySeconds." }}
{{- end }}
{{- end }}
leaderElection:
  enabled: {{ .Values.leaderElection.enabled }}
  namespace: {{ .Release.Namespace }}
  name: {{ include "sluice.operator" . }}
  leaseSeconds: {{ .Values.leaderElection.leaseSeconds }}
  renewSeconds: {{ .Values.leaderElection.renewSeconds }}
  retrySeconds: {{ .Values.leaderElection.retrySeconds }}
metrics:
  connection: {{ include "sluice.prometheusConnection" . }}
{{ toYaml (omit .Values.metrics "connection") | indent 2 }}
{{- if .Values.cache.enabled }}
cache:
  address: {{ include "sluice.cache" . }}.{{ .Release.Namespace }}.svc:7473
  secret: {{ include "sluice.cache" . }}-tls
{{- end }}
learntConfigMap: {{ include "sluice.name" . }}-learnt
feeder:
{{ toYaml .Values.feeder | indent 2 }}
nodes:
{{ toYaml .Values.nodes | indent 2 }}
scheduler:
{{ toYaml .Values.scheduler | indent 2 }}
{{- end }}
