// franz-go: its client with its defaults, which are idempotent, and its admin client.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"kafscale/clients/puppet"
)

const patience = 20 * time.Second

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

var acks = map[string]kgo.Acks{
	"0":   kgo.NoAck(),
	"1":   kgo.LeaderAck(),
	"all": kgo.AllISRAcks(),
}

type franz struct {
	address   string
	admin     *kadm.Client
	producers map[puppet.Sending]*kgo.Client
}

func main() { puppet.Main(connect, join) }

func connect(address string) (puppet.Client, error) {
	client, err := kgo.NewClient(wayIn(address)...)
	if err != nil {
		return nil, err
	}
	return &franz{address, kadm.NewClient(client), map[puppet.Sending]*kgo.Client{}}, nil
}

// Where to connect to, and how to log in there, if one has to.
func wayIn(address string) []kgo.Opt {
	options := []kgo.Opt{kgo.SeedBrokers(address)}
	if login := puppet.WayIn(); login != nil {
		known := scram.Auth{User: login.User, Pass: login.Password}
		options = append(options, kgo.DialTLSConfig(login.TLS), kgo.SASL(known.AsSha512Mechanism()))
	}
	return options
}

func (f *franz) CodeOf(err error) int {
	var known *kerr.Error
	if errors.As(err, &known) {
		return int(known.Code)
	}
	return puppet.UnknownCode
}

func (f *franz) Create(topic string, partitions int32, configs map[string]string) error {
	ctx, cancel := within()
	defer cancel()
	_, err := f.admin.CreateTopic(ctx, partitions, -1, pointers(configs), topic)
	return err
}

func (f *franz) Delete(topic string) error {
	ctx, cancel := within()
	defer cancel()
	_, err := f.admin.DeleteTopic(ctx, topic)
	return err
}

func (f *franz) Topics() (map[string]int, error) {
	ctx, cancel := within()
	defer cancel()
	topics, err := f.admin.ListTopics(ctx)
	counts := map[string]int{}
	for name, topic := range topics {
		counts[name] = len(topic.Partitions)
	}
	return counts, err
}

func (f *franz) Configs(topic string) (map[string]string, error) {
	ctx, cancel := within()
	defer cancel()
	described, err := f.admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, config := range described[0].Configs {
		found[config.Key] = config.MaybeValue()
	}
	return found, described[0].Err
}

func (f *franz) Alter(topic string, configs map[string]string) error {
	ctx, cancel := within()
	defer cancel()
	changes := []kadm.AlterConfig{}
	for name, value := range pointers(configs) {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: value})
	}
	answers, err := f.admin.AlterTopicConfigs(ctx, changes, topic)
	if err != nil {
		return err
	}
	return answers[0].Err
}

func (f *franz) Produce(
	topic string, records []puppet.Record, sending puppet.Sending,
) ([]int64, error) {
	producer, err := f.producer(sending)
	if err != nil {
		return nil, err
	}
	ctx, cancel := within()
	defer cancel()
	sent := make([]*kgo.Record, len(records))
	for i, record := range records {
		sent[i] = &kgo.Record{
			Topic: topic,
			Key:   puppet.Bytes(record.Key),
			Value: puppet.Bytes(record.Value),
		}
		if record.TimestampMs > 0 {
			sent[i].Timestamp = time.UnixMilli(record.TimestampMs)
		}
		for _, header := range record.Headers {
			sent[i].Headers = append(
				sent[i].Headers, kgo.RecordHeader{Key: header[0], Value: []byte(header[1])})
		}
	}
	results := producer.ProduceSync(ctx, sent...)
	offsets := make([]int64, len(records))
	for i, record := range sent {
		offsets[i] = record.Offset
	}
	return offsets, results.FirstErr()
}

// The producer of a way of sending. It is idempotent unless the acks are said and are not those of
// an idempotent producer.
func (f *franz) producer(sending puppet.Sending) (*kgo.Client, error) {
	if producer, found := f.producers[sending]; found {
		return producer, nil
	}
	options := append(wayIn(f.address), kgo.AllowAutoTopicCreation())
	if sending.Codec != "" {
		options = append(options, kgo.ProducerBatchCompression(codecs[sending.Codec]))
	}
	if sending.Acks != "" {
		options = append(options, kgo.RequiredAcks(acks[sending.Acks]))
		if !sending.Idempotent {
			options = append(options, kgo.DisableIdempotentWrite())
		}
	}
	producer, err := kgo.NewClient(options...)
	if err == nil {
		f.producers[sending] = producer
	}
	return producer, err
}

func (f *franz) Consume(
	topic string, partition int32, offset int64, count int,
) ([]puppet.Record, error) {
	start := map[int32]kgo.Offset{partition: kgo.NewOffset().At(offset)}
	read := kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: start})
	consumer, err := kgo.NewClient(append(wayIn(f.address), read)...)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	ctx, cancel := within()
	defer cancel()
	found := []puppet.Record{}
	for len(found) < count {
		fetches := consumer.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return found, err
		}
		fetches.EachRecord(func(record *kgo.Record) {
			found = append(found, received(record))
		})
	}
	return found, nil
}

func received(record *kgo.Record) puppet.Record {
	headers := [][2]string{}
	for _, header := range record.Headers {
		headers = append(headers, [2]string{header.Key, string(header.Value)})
	}
	return puppet.Record{
		Partition:   record.Partition,
		Offset:      record.Offset,
		TimestampMs: record.Timestamp.UnixMilli(),
		Key:         puppet.Text(record.Key),
		Value:       puppet.Text(record.Value),
		Headers:     headers,
	}
}

func (f *franz) Offset(topic string, partition int32, timestampMs int64) (int64, error) {
	ctx, cancel := within()
	defer cancel()
	list := func(ctx context.Context, topics ...string) (kadm.ListedOffsets, error) {
		return f.admin.ListOffsetsAfterMilli(ctx, timestampMs, topics...)
	}
	switch timestampMs {
	case -1:
		list = f.admin.ListEndOffsets
	case -2:
		list = f.admin.ListStartOffsets
	}
	listed, err := list(ctx, topic)
	if err != nil {
		return -1, err
	}
	found, _ := listed.Lookup(topic, partition)
	return found.Offset, found.Err
}

func (f *franz) Trim(topic string, partition int32, offset int64) error {
	ctx, cancel := within()
	defer cancel()
	before := kadm.Offsets{}
	before.Add(kadm.Offset{Topic: topic, Partition: partition, At: offset})
	answers, err := f.admin.DeleteRecords(ctx, before)
	if err != nil {
		return err
	}
	return answers[topic][partition].Err
}

func within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

func pointers(texts map[string]string) map[string]*string {
	found := map[string]*string{}
	for name, text := range texts {
		found[name] = &text
	}
	return found
}
