from django.apps import AppConfig


class AdmissionConfig(AppConfig):
    name = "upstream.admission"
    label = "admission"
