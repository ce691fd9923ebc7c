package jobs_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"queuekeeper/jobs"
)

func TestAFreeQueueIsAcquired(t *testing.T) {
	s := newSite(t)
	a := s.acquire(bid("a", 1, 1))
	if a.Epoch() != 1 || a.Before != (jobs.Holder{}) {
		t.Errorf("epoch %d, taken over from %q; want 1 and nobody", a.Epoch(), a.Before.Name())
	}
	s.is("1 a/1/1 web-a boot ns 1 7", `select concat_ws(' ', epoch, holder, host, boot_id, pid_namespace, pid, process_start)
		from queues`)
	s.is("00:00:30 t", `select concat_ws(' ', ttl,
		expires_at > now() + interval '10 s' and expires_at < now() + interval '31 s') from queues`)
}

func TestAHeldQueueIsRefusedWithWhoAndHowLong(t *testing.T) {
	s := newSite(t)
	s.acquire(bid("a", 2, 3))
	held := s.refused(bid("b", 5, 1))
	same(t, "holder", held.Holder, bid("a", 2, 3).Holder)
	near(t, "expires in", held.ExpiresIn, 30*time.Second)
	if held.Queue != "q" || held.TTL != 30*time.Second || held.Seen.Epoch != 1 {
		t.Errorf("queue %s, ttl %v, epoch %d; want q, 30s, 1", held.Queue, held.TTL, held.Seen.Epoch)
	}
	s.exec(`update queues set expires_at = 'infinity'`) // by hand
	if held := s.refused(bid("b", 5, 2)); held.ExpiresIn != 24*time.Hour {
		t.Errorf("expires in %v, want at most a day", held.ExpiresIn)
	}
}

func TestAnExpiredLeaseIsTakenOver(t *testing.T) {
	s := newSite(t)
	s.acquire(bid("a", 1, 1))
	s.expire()
	if b := s.acquire(bid("b", 1, 1)); b.Epoch() != 2 || b.Before.Name() != "web-a/1" {
		t.Errorf("epoch %d, taken over from %q; want 2 and web-a/1", b.Epoch(), b.Before.Name())
	}
}

func TestOnlyALaterOneOfTheSameSupervisorTakesOver(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct {
		supervisor string
		n, c       int
		takes      bool
	}{
		{"a", 5, 6, true}, {"a", 6, 1, true},
		{"a", 5, 5, false}, {"a", 5, 4, false}, {"a", 4, 9, false}, {"b", 9, 9, false},
	} {
		s.each(fmt.Sprint(c), func(s *site) {
			s.acquire(bid("a", 5, 5))
			if b := bid(c.supervisor, c.n, c.c); c.takes {
				s.acquire(b)
			} else {
				s.refused(b)
			}
		})
	}
}

func TestALeaseKnownToBeDeadIsTakenOverUnlessItWasRenewed(t *testing.T) {
	s := newSite(t)
	a, b := s.acquire(bid("a", 1, 1)), bid("b", 1, 1)
	b.Free = &s.refused(b).Seen
	s.step(a, jobs.Step{})
	b.Free = &s.refused(b).Seen
	s.acquire(b)
}

func TestAReleasedQueueIsAnybodysAndTheyAreTold(t *testing.T) {
	s := newSite(t)
	a := s.acquire(bid("a", 7, 1))
	listener := listen(t, s.url, "q")
	if err := a.Release(ctx, jobs.Step{}, jobs.LaneRates{}); err != nil {
		t.Fatal(err)
	}
	wantPayload(t, listener, "lease")
	s.is("true", `select supervisor is null and holder is null and pid is null from queues`)
	if b := s.acquire(bid("b", 1, 1)); b.Epoch() != 2 || b.Before != (jobs.Holder{}) {
		t.Errorf("epoch %d, taken over from %q; want 2 and nobody", b.Epoch(), b.Before.Name())
	}
	if err := a.Release(ctx, jobs.Step{}, jobs.LaneRates{}); !errors.Is(err, jobs.ErrLeaseLost) {
		t.Errorf("release after another acquired: %v, want ErrLeaseLost", err)
	}
	s.is("b/1/1", `select holder from queues`)
}

func TestReleaseRecordsTheLastOutcomes(t *testing.T) {
	s := newSite(t)
	s.insert(2)
	a := s.acquire(bid("a", 1, 1))
	claimed := s.claim(a, 2)
	ended := []jobs.Ended{{Ref: claimed[0].Ref(), Kind: jobs.KindDone}, {Ref: claimed[1].Ref(), Kind: jobs.KindExcused}}
	finish(t, a.Release(ctx, jobs.Step{Ended: ended, Starts: 2}, jobs.LaneRates{}))
	s.row(1, "done 1 0 0")
	s.row(2, "pending 1 1 0")
	s.is("2", `select starts from queues`)
}

func TestTheStateOfTheRateIsKept(t *testing.T) {
	s := newSite(t)
	a := s.acquire(bid("a", 1, 1))
	if a.EmptyFor < 24*time.Hour {
		t.Errorf("empty for %v in a new queue, want for ever", a.EmptyFor)
	}
	s.step(a, jobs.Step{Rates: jobs.Rates{EmptyFor: time.Hour}, Starts: 3})
	if b := s.acquire(bid("a", 2, 1)); b.EmptyFor > time.Second {
		t.Errorf("empty for %v after a death, want 0", b.EmptyFor)
	} else if err := b.Release(ctx, jobs.Step{Rates: jobs.Rates{EmptyFor: time.Hour}, Starts: 4}, jobs.LaneRates{}); err != nil {
		t.Fatal(err)
	}
	if c := s.acquire(bid("b", 1, 1)); c.EmptyFor < time.Hour || c.EmptyFor > time.Hour+time.Minute {
		t.Errorf("empty for %v after a release, want an hour", c.EmptyFor)
	}
	s.is("7", `select starts from queues`)
}

// The epoch alone repeats when a failover has lost a commit; the holder alone would let an old Step in.
func TestALateWriterIsFenced(t *testing.T) {
	s := newSite(t)
	for name, move := range map[string]string{
		"by the epoch":  `update queues set epoch = epoch + 1`,
		"by the holder": `update queues set supervisor = 'b'`,
		"by a release":  `update queues set supervisor = null, n = null, c = null`,
	} {
		s.each(name, func(s *site) {
			s.insert(2)
			a := s.acquire(bid("a", 1, 1))
			ref := s.claim(a, 1)[0].Ref()
			s.exec(move)
			done := []jobs.Ended{{Ref: ref, Kind: jobs.KindDone}}
			before := column(t, s.look, `select queues from queues`)
			reply, err := a.Step(ctx, jobs.Step{Ended: done, Claim: 5, Starts: 9, Pause: time.Hour})
			if !errors.Is(err, jobs.ErrLeaseLost) || len(reply.Claimed)+len(reply.Recorded) != 0 {
				s.Errorf("step = %+v, %v; want nothing and ErrLeaseLost", reply, err)
			}
			if err := a.Release(ctx, jobs.Step{Ended: done, Starts: 9}, jobs.LaneRates{}); !errors.Is(err, jobs.ErrLeaseLost) {
				s.Errorf("release: %v, want ErrLeaseLost", err)
			}
			if _, err := a.Sweep(ctx, nil, bid("a", 1, 1).Backoff); !errors.Is(err, jobs.ErrLeaseLost) {
				s.Errorf("sweep: %v, want ErrLeaseLost", err)
			}
			s.row(1, "running 1 0 0")
			s.row(2, "pending 0 0 0")
			s.is(before, `select queues from queues`)
		})
	}
}

func TestAStepRenewsTheLease(t *testing.T) {
	s := newSite(t)
	a := s.acquire(bid("a", 1, 1))
	s.expire() // nobody took it: it can still be renewed
	s.step(a, jobs.Step{})
	s.is("true", `select expires_at > now() + interval '10 s' from queues`)
}
