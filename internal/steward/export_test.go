package steward

import "time"

// TakeTime makes the last operation of a steward one that may take long, for machines that are busy. Before Run.
func (s *Steward) TakeTime(d time.Duration) { s.farewell = d }
