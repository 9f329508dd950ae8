{{- define "baton.labels" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/component: {{ .part }}
app.kubernetes.io/part-of: baton
{{- end }}

{{- define "baton.selector" -}}
app.kubernetes.io/name: {{ .name }}
{{- end }}
