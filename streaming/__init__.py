"""The engine of Lookout: continuous spatial queries over streams. It knows nothing of Django."""
