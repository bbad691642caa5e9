"""Sessions: intervals of each key that merge, their timers, and bulk making."""
