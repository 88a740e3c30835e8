// Transform reads a topic, and writes each record to another one in transactions, by franz-go. The
// same as Transform.java, which describes it.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	options := map[string]string{}
	for _, argument := range os.Args[1:] {
		name, value, _ := strings.Cut(argument, "=")
		options[name] = value
	}
	if err := run(context.Background(), options); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, options map[string]string) error {
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(strings.Split(options["bootstrap"], ",")...),
		kgo.TransactionalID(options["transactional_id"]),
		kgo.TransactionTimeout(10*time.Second),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumerGroup(options["group"]),
		kgo.ConsumeTopics(options["input"]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(6*time.Second),
		kgo.HeartbeatInterval(time.Second),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RequireStableFetchOffsets(),
	)
	if err != nil {
		return err
	}
	count, err := strconv.Atoi(options["records"])
	if err != nil {
		return err
	}
	abortEvery, err := strconv.Atoi(options["abort_every"])
	if err != nil {
		return err
	}
	for transactions := 1; ; transactions++ {
		fetches := session.PollRecords(ctx, count)
		if fetches.NumRecords() == 0 {
			continue
		}
		if err := session.Begin(); err != nil {
			return err
		}
		promise := kgo.AbortingFirstErrPromise(session.Client())
		fetches.EachRecord(func(record *kgo.Record) {
			copied := &kgo.Record{
				Topic:     options["output"],
				Partition: record.Partition,
				Key:       record.Key,
				Value:     record.Value,
			}
			session.Produce(ctx, copied, promise.Promise())
		})
		isCommit := promise.Err() == nil && transactions%abortEvery != 0
		committed, err := session.End(ctx, kgo.TransactionEndTry(isCommit))
		switch {
		case err != nil:
			return err
		case committed:
			fmt.Println("committed", fetches.NumRecords())
		default:
			fmt.Println("aborted")
		}
	}
}
