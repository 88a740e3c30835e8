// franz-go: its client with the defaults (idempotent), and its admin client.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"kafscale/clients/driver"
)

const timeout = 20 * time.Second

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
	producers map[driver.ProducerOptions]*kgo.Client
}

func main() { driver.Main(connect, join) }

func connect(address string) (driver.Client, error) {
	client, err := kgo.NewClient(connectionOptions(address)...)
	if err != nil {
		return nil, err
	}
	return &franz{address, kadm.NewClient(client), map[driver.ProducerOptions]*kgo.Client{}}, nil
}

// The address of the broker, and the credentials if there are any.
func connectionOptions(address string) []kgo.Opt {
	options := []kgo.Opt{kgo.SeedBrokers(address)}
	if credentials := driver.EnvironmentCredentials(); credentials != nil {
		auth := scram.Auth{User: credentials.User, Pass: credentials.Password}
		options = append(options, kgo.DialTLSConfig(credentials.TLS), kgo.SASL(auth.AsSha512Mechanism()))
	}
	return options
}

func (f *franz) CodeOf(err error) int {
	var kafkaError *kerr.Error
	if errors.As(err, &kafkaError) {
		return int(kafkaError.Code)
	}
	return driver.UnknownCode
}

func (f *franz) Create(topic string, partitions int32, configs map[string]string) error {
	ctx, cancel := withTimeout()
	defer cancel()
	_, err := f.admin.CreateTopic(ctx, partitions, -1, pointers(configs), topic)
	return err
}

func (f *franz) Delete(topic string) error {
	ctx, cancel := withTimeout()
	defer cancel()
	_, err := f.admin.DeleteTopic(ctx, topic)
	return err
}

func (f *franz) Topics() (map[string]int, error) {
	ctx, cancel := withTimeout()
	defer cancel()
	topics, err := f.admin.ListTopics(ctx)
	counts := map[string]int{}
	for name, topic := range topics {
		counts[name] = len(topic.Partitions)
	}
	return counts, err
}

func (f *franz) Configs(topic string) (map[string]string, error) {
	ctx, cancel := withTimeout()
	defer cancel()
	described, err := f.admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return nil, err
	}
	configs := map[string]string{}
	for _, config := range described[0].Configs {
		configs[config.Key] = config.MaybeValue()
	}
	return configs, described[0].Err
}

func (f *franz) Alter(topic string, configs map[string]string) error {
	ctx, cancel := withTimeout()
	defer cancel()
	changes := []kadm.AlterConfig{}
	for name, value := range pointers(configs) {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: value})
	}
	responses, err := f.admin.AlterTopicConfigs(ctx, changes, topic)
	if err != nil {
		return err
	}
	return responses[0].Err
}

func (f *franz) Produce(
	topic string, records []driver.Record, options driver.ProducerOptions,
) ([]int64, error) {
	producer, err := f.producer(options)
	if err != nil {
		return nil, err
	}
	ctx, cancel := withTimeout()
	defer cancel()
	sent := make([]*kgo.Record, len(records))
	for i, record := range records {
		sent[i] = &kgo.Record{
			Topic: topic,
			Key:   driver.Bytes(record.Key),
			Value: driver.Bytes(record.Value),
		}
		if record.TimestampMs > 0 {
			sent[i].Timestamp = time.UnixMilli(record.TimestampMs)
		}
		for _, header := range record.Headers {
			sent[i].Headers = append(
				sent[i].Headers, kgo.RecordHeader{Key: header[0], Value: []byte(header[1])})
		}
	}
	if options.TransactionalID != "" {
		err = producer.BeginTransaction()
	}
	if err != nil {
		return nil, err
	}
	results := producer.ProduceSync(ctx, sent...)
	err = results.FirstErr()
	if err == nil && options.TransactionalID != "" {
		err = producer.EndTransaction(ctx, kgo.TransactionEndTry(!options.Abort))
	}
	offsets := make([]int64, len(records))
	for i, record := range sent {
		offsets[i] = record.Offset
	}
	return offsets, err
}

// The producer with these options, created on first use. It is idempotent unless `Acks` is set and
// `Idempotent` is not.
func (f *franz) producer(options driver.ProducerOptions) (*kgo.Client, error) {
	options.Abort = false // The same producer can do both.
	if producer, found := f.producers[options]; found {
		return producer, nil
	}
	settings := append(connectionOptions(f.address), kgo.AllowAutoTopicCreation())
	if options.Codec != "" {
		settings = append(settings, kgo.ProducerBatchCompression(codecs[options.Codec]))
	}
	if options.Acks != "" {
		settings = append(settings, kgo.RequiredAcks(acks[options.Acks]))
		if !options.Idempotent {
			settings = append(settings, kgo.DisableIdempotentWrite())
		}
	}
	if options.TransactionalID != "" {
		settings = append(settings, kgo.TransactionalID(options.TransactionalID))
	}
	producer, err := kgo.NewClient(settings...)
	if err == nil {
		f.producers[options] = producer
	}
	return producer, err
}

func (f *franz) Consume(
	topic string, partition int32, offset int64, count int, committed bool,
) ([]driver.Record, error) {
	start := map[int32]kgo.Offset{partition: kgo.NewOffset().At(offset)}
	read := kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: start})
	settings := append(connectionOptions(f.address), read)
	if committed {
		settings = append(settings, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	consumer, err := kgo.NewClient(settings...)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	ctx, cancel := withTimeout()
	defer cancel()
	records := []driver.Record{}
	for len(records) < count {
		fetches := consumer.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return records, err
		}
		fetches.EachRecord(func(record *kgo.Record) {
			records = append(records, received(record))
		})
	}
	return records, nil
}

func received(record *kgo.Record) driver.Record {
	headers := [][2]string{}
	for _, header := range record.Headers {
		headers = append(headers, [2]string{header.Key, string(header.Value)})
	}
	return driver.Record{
		Partition:   record.Partition,
		Offset:      record.Offset,
		TimestampMs: record.Timestamp.UnixMilli(),
		Key:         driver.Text(record.Key),
		Value:       driver.Text(record.Value),
		Headers:     headers,
	}
}

func (f *franz) Offset(topic string, partition int32, timestampMs int64) (int64, error) {
	ctx, cancel := withTimeout()
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
	result, _ := listed.Lookup(topic, partition)
	return result.Offset, result.Err
}

func (f *franz) Trim(topic string, partition int32, offset int64) error {
	ctx, cancel := withTimeout()
	defer cancel()
	starts := kadm.Offsets{}
	starts.Add(kadm.Offset{Topic: topic, Partition: partition, At: offset})
	responses, err := f.admin.DeleteRecords(ctx, starts)
	if err != nil {
		return err
	}
	return responses[topic][partition].Err
}

func withTimeout() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), timeout)
}

func pointers(texts map[string]string) map[string]*string {
	result := map[string]*string{}
	for name, text := range texts {
		result[name] = &text
	}
	return result
}
