{{- define "payrelay.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "payrelay.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "payrelay.selector" -}}
app.kubernetes.io/name: payrelay
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "payrelay.labels" -}}
{{ include "payrelay.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "payrelay.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "payrelay.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Call with a dict of root and databaseUrl, the member of the secret with the URL. */}}
{{- define "payrelay.environment" -}}
- name: PAYRELAY_DATABASE_URL
  value: ""
- name: PAYRELAY_DATABASE_URL_FILE
  value: /run/secrets/payrelay/{{ .databaseUrl }}
- name: PAYRELAY_ENCRYPTION_KEY_FILE
  value: /run/secrets/payrelay/{{ .root.Values.secret.encryptionKey }}
- name: PAYRELAY_MARK_PATH
  value: /var/lib/payrelay/marks
- name: PAYRELAY_METRICS_ADDRESS
  value: 0.0.0.0:9464
{{- range $name, $value := .root.Values.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end -}}

{{- define "payrelay.volumes" -}}
- name: secrets
  secret:
    secretName: {{ .Values.secret.name }}
    defaultMode: 0440
- name: temporary
  emptyDir: {sizeLimit: 16Mi}
- name: data
  {{- if .Values.marks.existingClaim }}
  persistentVolumeClaim:
    claimName: {{ .Values.marks.existingClaim }}
  {{- else }}
  emptyDir: {sizeLimit: 64Mi}
  {{- end }}
{{- end -}}

{{- define "payrelay.mounts" -}}
- name: secrets
  mountPath: /run/secrets/payrelay
  readOnly: true
- name: temporary
  mountPath: /tmp
- name: data
  mountPath: /var/lib/payrelay
{{- end -}}
