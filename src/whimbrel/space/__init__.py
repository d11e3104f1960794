"""Where events happen: geometries, distances, regions."""
