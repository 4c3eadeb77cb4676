"""The pages for operators of a service: settings, metrics, alerts, and figures of its performance."""
