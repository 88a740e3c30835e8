package puppet

import (
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// Orders say how a client takes part in a group. A strategy has the name that Kafka gives it.
type Orders struct {
	Address     string `json:"address"`
	Topic       string `json:"topic"`
	Group       string `json:"group"`
	Strategy    string `json:"strategy"`
	SessionMs   int    `json:"session_timeout_ms"`
	HeartbeatMs int    `json:"heartbeat_interval_ms"`
}

// Session is how long a member may be silent before the others take over.
func (o Orders) Session() time.Duration { return milliseconds(o.SessionMs) }

// Heartbeat is how often a member says that it is alive.
func (o Orders) Heartbeat() time.Duration { return milliseconds(o.HeartbeatMs) }

func milliseconds(count int) time.Duration { return time.Duration(count) * time.Millisecond }

// Join takes part in a group until the context ends, and has left when it returns. It reads from the
// beginning where the group has committed nothing. What it has read, it tells before it commits it.
type Join func(ctx context.Context, orders Orders, diary *Diary) error

// Diary is what a member tells as it goes, a line for each event: it outlives a member that is
// killed. `tests/services/member_events.py` says what the events mean.
type Diary struct{ lock sync.Mutex }

type event struct {
	What       string  `json:"what"`
	AtMs       int64   `json:"at_ms"`
	Partitions []int32 `json:"partitions,omitempty"`
	Partition  int32   `json:"partition"`
	First      int64   `json:"first"`
	End        int64   `json:"end"`
	Offset     int64   `json:"offset"`
	Error      string  `json:"error"`
}

// Assigned tells which partitions the member owns as well from now on.
func (d *Diary) Assigned(partitions ...int32) {
	d.write(event{What: "assigned", Partitions: partitions})
}

// Revoked tells which partitions the member gives up.
func (d *Diary) Revoked(partitions ...int32) {
	d.write(event{What: "revoked", Partitions: partitions})
}

// Lost tells which partitions were taken from the member.
func (d *Diary) Lost(partitions ...int32) {
	d.write(event{What: "lost", Partitions: partitions})
}

// Read tells which records have come: those from the first up to the end.
func (d *Diary) Read(partition int32, first, end int64) {
	d.write(event{What: "read", Partition: partition, First: first, End: end})
}

// Committed tells that everything below the offset is done.
func (d *Diary) Committed(partition int32, offset int64) {
	d.write(event{What: "committed", Partition: partition, Offset: offset})
}

// Refused tells why a commit was not accepted.
func (d *Diary) Refused(err error) { d.write(event{What: "refused", Error: err.Error()}) }

// Failed tells what else went wrong.
func (d *Diary) Failed(err error) { d.write(event{What: "failed", Error: err.Error()}) }

func (d *Diary) write(event event) {
	event.AtMs = time.Now().UnixMilli()
	d.lock.Lock()
	defer d.lock.Unlock()
	if err := json.NewEncoder(os.Stdout).Encode(event); err != nil {
		panic(err)
	}
}

// Takes part in a group, as the orders say, until the signal to leave.
func beMember(join Join, orders string) {
	var told Orders
	if err := json.Unmarshal([]byte(orders), &told); err != nil {
		panic(err)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	diary := &Diary{}
	if err := join(ctx, told, diary); err != nil {
		diary.Failed(err)
		os.Exit(1)
	}
	diary.write(event{What: "ended"})
}
