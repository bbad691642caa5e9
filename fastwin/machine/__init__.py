"""What the machine offers: installed packages, Java, memory. Read from outside: nothing of them is imported."""
