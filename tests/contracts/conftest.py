"""Property tests here judge answers, never durations: a busy machine must not fail them."""

from hypothesis import settings

settings.register_profile("steady", deadline=None)
settings.load_profile("steady")
