"""What reads the files of other systems, a module for each sort; `formats` lists them."""
