// Package puppet lets a test move a Kafka client: a command a line on standard input, as JSON, and
// an answer a line on standard output. What the commands mean is the same for every client, so that
// the test is written once; how a client carries them out is the client's own way. A client that is
// told to be a member of a group is that and nothing else, and tells what happens to it.
package puppet

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
)

// ErrUnsupported says that the client has no such thing, whatever the broker has.
var ErrUnsupported = errors.New("this client does not support it")

// UnknownCode is Kafka's code for errors that have none of their own.
const UnknownCode = -1

// Record is what a producer sends and a consumer receives; null and empty are different things.
type Record struct {
	Partition   int32       `json:"partition"`
	Offset      int64       `json:"offset"`
	TimestampMs int64       `json:"timestamp_ms"`
	Key         *string     `json:"key"`
	Value       *string     `json:"value"`
	Headers     [][2]string `json:"headers"`
}

// Sending is how records are sent; what is not said is left to the client's defaults. A client keeps
// one producer for each way.
type Sending struct {
	Codec      string `json:"codec"`
	Acks       string `json:"acks"` // "0", "1" or "all".
	Idempotent bool   `json:"idempotent"`
}

// Command is one line of input: `do` says which method of Client it is for.
type Command struct {
	Do          string            `json:"do"`
	Topic       string            `json:"topic"`
	Partitions  int32             `json:"partitions"`
	Partition   int32             `json:"partition"`
	Offset      int64             `json:"offset"`
	TimestampMs int64             `json:"timestamp_ms"`
	Count       int               `json:"count"`
	Configs     map[string]string `json:"configs"`
	Records     []Record          `json:"records"`
	Sending     Sending           `json:"sending"`
}

// Client is what every client is moved by. A timestamp of -1 asks for the end of a partition and -2
// for its beginning, as on the wire.
type Client interface {
	Create(topic string, partitions int32, configs map[string]string) error
	Delete(topic string) error
	Topics() (map[string]int, error)
	Configs(topic string) (map[string]string, error)
	Alter(topic string, configs map[string]string) error
	Produce(topic string, records []Record, sending Sending) ([]int64, error)
	Consume(topic string, partition int32, offset int64, count int) ([]Record, error)
	Offset(topic string, partition int32, timestampMs int64) (int64, error)
	Trim(topic string, partition int32, offset int64) error
	CodeOf(err error) int
}

type failure struct {
	Message     string `json:"message"`
	Code        int    `json:"code"`
	Unsupported bool   `json:"unsupported"`
}

type answer struct {
	Result any      `json:"result"`
	Error  *failure `json:"error"`
}

// Main does what the command line says. "member" and its orders make it a member of a group until
// it gets the signal to leave; otherwise it connects to the broker that is named, and obeys until
// the input ends.
func Main(connect func(address string) (Client, error), join Join) {
	if os.Args[1] == "member" {
		beMember(join, os.Args[2])
		return
	}
	client, err := connect(os.Args[1])
	if err != nil {
		panic(err)
	}
	input := json.NewDecoder(bufio.NewReader(os.Stdin))
	output := json.NewEncoder(os.Stdout)
	for input.More() {
		var command Command
		if err := input.Decode(&command); err != nil {
			panic(err)
		}
		if err := output.Encode(obey(client, command)); err != nil {
			panic(err)
		}
	}
}

func obey(client Client, command Command) answer {
	result, err := do(client, command)
	if err == nil {
		return answer{Result: result}
	}
	return answer{Error: &failure{
		Message:     err.Error(),
		Code:        client.CodeOf(err),
		Unsupported: errors.Is(err, ErrUnsupported),
	}}
}

func do(client Client, c Command) (any, error) {
	switch c.Do {
	case "create":
		return nil, client.Create(c.Topic, c.Partitions, c.Configs)
	case "delete":
		return nil, client.Delete(c.Topic)
	case "topics":
		return client.Topics()
	case "configs":
		return client.Configs(c.Topic)
	case "alter":
		return nil, client.Alter(c.Topic, c.Configs)
	case "produce":
		return client.Produce(c.Topic, c.Records, c.Sending)
	case "consume":
		return client.Consume(c.Topic, c.Partition, c.Offset, c.Count)
	case "offset":
		return client.Offset(c.Topic, c.Partition, c.TimestampMs)
	case "trim":
		return nil, client.Trim(c.Topic, c.Partition, c.Offset)
	}
	panic("no such command: " + c.Do)
}

// Bytes are those of a text, or none at all.
func Bytes(text *string) []byte {
	if text == nil {
		return nil
	}
	return []byte(*text)
}

// Text is that of bytes, or none at all.
func Text(bytes []byte) *string {
	if bytes == nil {
		return nil
	}
	text := string(bytes)
	return &text
}
