"""What the machine offers: installed packages, Java, memory, and files that are put in place as a whole. Of what is
installed nothing is imported: it is read from outside."""
