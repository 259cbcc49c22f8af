"""Images and audio that the user's libraries ask for, made by native libraries in the same process."""
