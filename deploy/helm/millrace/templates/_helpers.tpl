{{- define "millrace.name" -}}
{{- .Values.fullnameOverride | default .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* A port of the config, by its section; 8080 and 9090 where it says nothing. */}}
{{- define "millrace.port" -}}
{{- $section := get .Values.config .of | default dict -}}
{{- $port := get $section "port" | default .default -}}
{{- if not (regexMatch "^[0-9]+$" (toString $port)) -}}
{{- fail (printf "config.%s.port: the chart needs the number itself, not %v" .of $port) -}}
{{- end -}}
{{- $port -}}
{{- end -}}

{{- define "millrace.webhooksPort" -}}
{{- include "millrace.port" (dict "Values" .Values "of" "server" "default" "8080") -}}
{{- end -}}

{{- define "millrace.adminPort" -}}
{{- if eq (toString ((.Values.config).admin).enabled) "false" -}}
{{- fail "config.admin.enabled: the chart's probes and metrics need the admin listener" -}}
{{- end -}}
{{- include "millrace.port" (dict "Values" .Values "of" "admin" "default" "9090") -}}
{{- end -}}

{{/* Seconds of shutdown.deadline, rounded up. */}}
{{- define "millrace.deadline" -}}
{{- $text := ((.Values.config).shutdown).deadline | default "30s" | toString -}}
{{- if not (regexMatch "^[0-9]+(ms|s|m|h)$" $text) -}}
{{- fail (printf "config.shutdown.deadline: the chart needs a whole number with ms, s, m or h, not %s" $text) -}}
{{- end -}}
{{- $number := regexFind "^[0-9]+" $text | int -}}
{{- if hasSuffix "ms" $text -}}{{ div (add $number 999) 1000 }}
{{- else if hasSuffix "s" $text -}}{{ $number }}
{{- else if hasSuffix "m" $text -}}{{ mul $number 60 }}
{{- else -}}{{ mul $number 3600 }}
{{- end -}}
{{- end -}}

{{/* Longer than preStop (10 s) and shutdown.deadline together. */}}
{{- define "millrace.gracePeriod" -}}
{{- $deadline := include "millrace.deadline" . | int -}}
{{- $given := .Values.terminationGracePeriodSeconds | int -}}
{{- if and (gt $given 0) (le $given (add $deadline 10 | int)) -}}
{{- fail (printf "terminationGracePeriodSeconds: %d is not longer than config.shutdown.deadline (%d s) and the 10 s of preStop" $given $deadline) -}}
{{- end -}}
{{- if gt $given 0 }}{{ $given }}{{ else }}{{ add $deadline 30 }}{{ end -}}
{{- end -}}

{{- define "millrace.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "millrace.labels" -}}
{{ include "millrace.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* What StatefulSet and Deployment share: all of the pod but its volume. */}}
{{- define "millrace.pod" -}}
metadata:
  labels:
    {{- include "millrace.selector" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # A changed config rolls the pods.
    millrace/config: {{ toYaml .Values.config | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "millrace.name" . }}
  automountServiceAccountToken: {{ .Values.serviceAccount.automountToken }}
  # A service beside it would otherwise put MILLRACE_…_PORT variables into its environment.
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ include "millrace.gracePeriod" . }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 1000
    runAsGroup: 1000
    fsGroup: 1000
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: millrace
      {{- $image := required "image.repository is not set: build the image (docker buildx bake --file deploy/docker-bake.hcl), push it, and name it here" .Values.image.repository }}
      {{- with .Values.image.digest }}
      image: "{{ $image }}@{{ . }}"
      {{- else }}
      image: "{{ $image }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
      {{- end }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      env:
        - name: MILLRACE_ACKNOWLEDGE
          value: {{ .Values.acknowledge }}
        # The kubelet and Prometheus reach it over the network, so it needs MILLRACE_ADMIN_TOKEN.
        - name: MILLRACE_ADMIN_HOST
          value: 0.0.0.0
        {{- with .Values.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      envFrom:
        - secretRef:
            name: {{ .Values.existingSecret }}
      ports:
        - name: webhooks
          containerPort: {{ include "millrace.webhooksPort" . }}
        - name: admin
          containerPort: {{ include "millrace.adminPort" . }}
      startupProbe:
        httpGet:
          path: /livez
          port: admin
        periodSeconds: 2
        failureThreshold: 60
      livenessProbe:
        httpGet:
          path: /livez
          port: admin
        periodSeconds: 10
        timeoutSeconds: 5
      readinessProbe:
        httpGet:
          path: /readyz
          port: admin
        periodSeconds: 5
        timeoutSeconds: 5
      lifecycle:
        # Load balancers continue sending for a moment after a pod has begun to end.
        preStop:
          exec:
            command: [sleep, "10"]
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        - name: config
          mountPath: /etc/millrace
          readOnly: true
        - name: data
          mountPath: /var/lib/millrace
        - name: tmp
          mountPath: /tmp
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ include "millrace.name" . }}
    - name: tmp
      emptyDir: {}
    {{- if eq .Values.acknowledge "delivered" }}
    - name: data
      emptyDir: {}
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- range . }}
    - {{- toYaml . | nindent 6 }}
      {{- if not .labelSelector }}
      labelSelector:
        matchLabels:
          {{- include "millrace.selector" $ | nindent 10 }}
      {{- end }}
    {{- end }}
  {{- end }}
{{- end -}}

{{/* Where deliveries go. The parentheses let a section that is left out be one without keys. */}}
{{- define "millrace.path" -}}
{{- $path := ((.Values.config).server).path | default "/webhooks" -}}
{{- if contains "$" $path -}}
{{- fail "config.server.path: an ingress or a gateway needs the path itself, not a variable" -}}
{{- end -}}
{{- $path -}}
{{- end -}}

{{/* Not empty where receipts are shown at /receipts/. */}}
{{- define "millrace.receipts" -}}
{{- if ((.Values.config).receipts).path -}}
{{- if gt (int .Values.replicas) 1 -}}
{{- fail "config.receipts: each replica has a log of its own, and one address cannot show several; set replicas to 1, or disable ingress and gateway" -}}
{{- end -}}
shown
{{- end -}}
{{- end -}}
