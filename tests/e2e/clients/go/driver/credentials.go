package driver

import (
	"crypto/tls"
	"crypto/x509"
	"os"
)

// Credentials authenticate a client at a secured broker: SASL with a password, over TLS.
type Credentials struct {
	User, Password string
	TLS            *tls.Config
}

// EnvironmentCredentials reads the credentials from the environment; nil without authentication.
func EnvironmentCredentials() *Credentials {
	user := os.Getenv("CLIENT_USER")
	if user == "" {
		return nil
	}
	certificate, err := os.ReadFile(os.Getenv("CLIENT_CA_FILE"))
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	return &Credentials{user, os.Getenv("CLIENT_PASSWORD"), &tls.Config{RootCAs: roots}}
}
