package driver

import (
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// MemberOptions configure a member of a consumer group. Strategies have Kafka's names.
type MemberOptions struct {
	Address     string `json:"address"`
	Topic       string `json:"topic"`
	Group       string `json:"group"`
	Strategy    string `json:"strategy"`
	SessionMs   int    `json:"session_timeout_ms"`
	HeartbeatMs int    `json:"heartbeat_interval_ms"`
}

// SessionTimeout is how long the coordinator waits for a heartbeat before it removes the member.
func (o MemberOptions) SessionTimeout() time.Duration { return milliseconds(o.SessionMs) }

// HeartbeatInterval is the time between two heartbeats.
func (o MemberOptions) HeartbeatInterval() time.Duration { return milliseconds(o.HeartbeatMs) }

func milliseconds(count int) time.Duration { return time.Duration(count) * time.Millisecond }

// Join runs a member until the context ends; the member has left the group when Join returns. It
// starts at the beginning of partitions without a committed offset, and writes a read event before
// it commits those records.
type Join func(ctx context.Context, options MemberOptions, events *EventWriter) error

// EventWriter prints the events of a member, one a line, so that they outlive a member that is
// killed. `tests/services/member_events.py` defines the events.
type EventWriter struct{ lock sync.Mutex }

type event struct {
	Event      string  `json:"event"`
	AtMs       int64   `json:"at_ms"`
	Partitions []int32 `json:"partitions,omitempty"`
	Partition  int32   `json:"partition"`
	First      int64   `json:"first"`
	End        int64   `json:"end"`
	Offset     int64   `json:"offset"`
	Error      string  `json:"error"`
}

// Assigned reports partitions that the member owns in addition from now on.
func (w *EventWriter) Assigned(partitions ...int32) {
	w.write(event{Event: "assigned", Partitions: partitions})
}

// Revoked reports partitions that the member gives up.
func (w *EventWriter) Revoked(partitions ...int32) {
	w.write(event{Event: "revoked", Partitions: partitions})
}

// Lost reports partitions that the member lost without a revocation.
func (w *EventWriter) Lost(partitions ...int32) {
	w.write(event{Event: "lost", Partitions: partitions})
}

// Read reports the received records, from the first offset up to the end.
func (w *EventWriter) Read(partition int32, first, end int64) {
	w.write(event{Event: "read", Partition: partition, First: first, End: end})
}

// Committed reports that the broker acknowledged the commit of this offset.
func (w *EventWriter) Committed(partition int32, offset int64) {
	w.write(event{Event: "committed", Partition: partition, Offset: offset})
}

// CommitRejected reports the error of a rejected commit.
func (w *EventWriter) CommitRejected(err error) {
	w.write(event{Event: "commit_rejected", Error: err.Error()})
}

// Failed reports any other error.
func (w *EventWriter) Failed(err error) { w.write(event{Event: "failed", Error: err.Error()}) }

func (w *EventWriter) write(event event) {
	event.AtMs = time.Now().UnixMilli()
	w.lock.Lock()
	defer w.lock.Unlock()
	if err := json.NewEncoder(os.Stdout).Encode(event); err != nil {
		panic(err)
	}
}

// Runs a member until SIGTERM.
func runMember(join Join, encodedOptions string) {
	var options MemberOptions
	if err := json.Unmarshal([]byte(encodedOptions), &options); err != nil {
		panic(err)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	events := &EventWriter{}
	if err := join(ctx, options, events); err != nil {
		events.Failed(err)
		os.Exit(1)
	}
	events.write(event{Event: "ended"})
}
