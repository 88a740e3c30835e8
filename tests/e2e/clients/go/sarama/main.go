// Sarama: its synchronous producer and its consumer of single partitions with the defaults (acks=1,
// not idempotent), and its cluster admin.
package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"kafscale/clients/driver"
)

const timeout = 20 * time.Second

var codecs = map[string]sarama.CompressionCodec{
	"none":   sarama.CompressionNone,
	"gzip":   sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy,
	"lz4":    sarama.CompressionLZ4,
	"zstd":   sarama.CompressionZSTD,
}

var acks = map[string]sarama.RequiredAcks{
	"0":   sarama.NoResponse,
	"1":   sarama.WaitForLocal,
	"all": sarama.WaitForAll,
}

type client struct {
	address   string
	sarama    sarama.Client
	admin     sarama.ClusterAdmin
	producers map[driver.ProducerOptions]sarama.SyncProducer
}

func main() { driver.Main(connect, join) }

// The defaults, with the credentials if there are any.
func newConfig() *sarama.Config {
	config := sarama.NewConfig()
	if credentials := driver.EnvironmentCredentials(); credentials != nil {
		config.Net.TLS.Enable, config.Net.TLS.Config = true, credentials.TLS
		config.Net.SASL.Enable = true
		config.Net.SASL.User, config.Net.SASL.Password = credentials.User, credentials.Password
	}
	return config
}

func connect(address string) (driver.Client, error) {
	connected, err := sarama.NewClient([]string{address}, newConfig())
	if err != nil {
		return nil, err
	}
	admin, err := sarama.NewClusterAdminFromClient(connected)
	producers := map[driver.ProducerOptions]sarama.SyncProducer{}
	return &client{address, connected, admin, producers}, err
}

func (c *client) CodeOf(err error) int {
	var kafkaError sarama.KError
	if errors.As(err, &kafkaError) {
		return int(kafkaError)
	}
	var producerErrors sarama.ProducerErrors
	if errors.As(err, &producerErrors) {
		return c.CodeOf(producerErrors[0].Err)
	}
	return driver.UnknownCode
}

func (c *client) Create(topic string, partitions int32, configs map[string]string) error {
	return c.admin.CreateTopic(topic, &sarama.TopicDetail{
		NumPartitions:     partitions,
		ReplicationFactor: -1,
		ConfigEntries:     pointers(configs),
	}, false)
}

func (c *client) Delete(topic string) error { return c.admin.DeleteTopic(topic) }

func (c *client) Topics() (map[string]int, error) {
	topics, err := c.admin.ListTopics()
	counts := map[string]int{}
	for name, topic := range topics {
		counts[name] = int(topic.NumPartitions)
	}
	return counts, err
}

func (c *client) Configs(topic string) (map[string]string, error) {
	resource := &sarama.ConfigResource{Type: sarama.TopicResource, Name: topic}
	described, err := c.admin.DescribeConfigs(
		[]*sarama.ConfigResource{resource}, sarama.DescribeConfigsOptions{})
	if err != nil {
		return nil, err
	}
	configs := map[string]string{}
	for _, config := range described[0].Configs {
		configs[config.Name] = config.Value
	}
	if code := described[0].ErrorCode; code != sarama.ErrNoError {
		return nil, code
	}
	return configs, nil
}

func (c *client) Alter(topic string, configs map[string]string) error {
	changes := map[string]sarama.IncrementalAlterConfigsEntry{}
	for name, value := range pointers(configs) {
		changes[name] = sarama.IncrementalAlterConfigsEntry{
			Operation: sarama.IncrementalAlterConfigsOperationSet, Value: value,
		}
	}
	return c.admin.IncrementalAlterConfig(sarama.TopicResource, topic, changes, false)
}

func (c *client) Produce(
	topic string, records []driver.Record, options driver.ProducerOptions,
) ([]int64, error) {
	producer, err := c.producer(options)
	if err != nil {
		return nil, err
	}
	sent := make([]*sarama.ProducerMessage, len(records))
	for i, record := range records {
		sent[i] = &sarama.ProducerMessage{
			Topic: topic, Key: encoder(record.Key), Value: encoder(record.Value),
		}
		if record.TimestampMs > 0 {
			sent[i].Timestamp = time.UnixMilli(record.TimestampMs)
		}
		for _, header := range record.Headers {
			sent[i].Headers = append(sent[i].Headers, sarama.RecordHeader{
				Key: []byte(header[0]), Value: []byte(header[1]),
			})
		}
	}
	if options.TransactionalID == "" {
		err = producer.SendMessages(sent)
	} else {
		err = transact(producer, sent, options.Abort)
	}
	offsets := make([]int64, len(records))
	for i, message := range sent {
		offsets[i] = message.Offset
	}
	return offsets, err
}

func transact(producer sarama.SyncProducer, sent []*sarama.ProducerMessage, abort bool) error {
	if err := producer.BeginTxn(); err != nil {
		return err
	}
	if err := producer.SendMessages(sent); err != nil {
		return err
	}
	if abort {
		return producer.AbortTxn()
	}
	return producer.CommitTxn()
}

func (c *client) producer(options driver.ProducerOptions) (sarama.SyncProducer, error) {
	options.Abort = false // The same producer can do both.
	if producer, found := c.producers[options]; found {
		return producer, nil
	}
	config := newConfig()
	config.Producer.Return.Successes = true // The synchronous producer requires it.
	if options.Codec != "" {
		config.Producer.Compression = codecs[options.Codec]
	}
	if options.Acks != "" {
		config.Producer.RequiredAcks = acks[options.Acks]
	}
	config.Producer.Transaction.ID = options.TransactionalID
	if options.Idempotent || options.TransactionalID != "" {
		config.Producer.Idempotent = true
		config.Producer.RequiredAcks = sarama.WaitForAll
		config.Net.MaxOpenRequests = 1
	}
	producer, err := sarama.NewSyncProducer([]string{c.address}, config)
	if err == nil {
		c.producers[options] = producer
	}
	return producer, err
}

func (c *client) Consume(
	topic string, partition int32, offset int64, count int, committed bool,
) ([]driver.Record, error) {
	config := newConfig()
	if committed {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	consumer, err := sarama.NewConsumer([]string{c.address}, config)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	partitionConsumer, err := consumer.ConsumePartition(topic, partition, offset)
	if err != nil {
		return nil, err
	}
	defer partitionConsumer.Close()
	deadline := time.After(timeout)
	records := []driver.Record{}
	for len(records) < count {
		select {
		case message := <-partitionConsumer.Messages():
			records = append(records, received(message))
		case <-deadline:
			return records, fmt.Errorf("timed out after %d records", len(records))
		}
	}
	return records, nil
}

func received(message *sarama.ConsumerMessage) driver.Record {
	headers := [][2]string{}
	for _, header := range message.Headers {
		headers = append(headers, [2]string{string(header.Key), string(header.Value)})
	}
	return driver.Record{
		Partition:   message.Partition,
		Offset:      message.Offset,
		TimestampMs: message.Timestamp.UnixMilli(),
		Key:         driver.Text(message.Key),
		Value:       driver.Text(message.Value),
		Headers:     headers,
	}
}

func (c *client) Offset(topic string, partition int32, timestampMs int64) (int64, error) {
	return c.sarama.GetOffset(topic, partition, timestampMs)
}

func (c *client) Trim(topic string, partition int32, offset int64) error {
	return c.admin.DeleteRecords(topic, map[int32]int64{partition: offset})
}

func encoder(text *string) sarama.Encoder {
	if text == nil {
		return nil
	}
	return sarama.StringEncoder(*text)
}

func pointers(texts map[string]string) map[string]*string {
	result := map[string]*string{}
	for name, text := range texts {
		result[name] = &text
	}
	return result
}
