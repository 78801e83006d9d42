"""The examples of the npm package with the frameworks that they are for."""
