/* Formats certificate subjects as Java does, and maps them to principals as Kafka does.

An input line is `name DER` or `rule RULES NAME`, in hexadecimal; so is each output line. */

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HexFormat;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

class Names {
    public static void main(String[] arguments) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] words = line.split(" ", -1);
            System.out.println("=" + HexFormat.of().formatHex(format(words).getBytes(UTF_8)));
        }
    }

    static String format(String[] words) throws Exception {
        byte[] first = HexFormat.of().parseHex(words[1]);
        if (words[0].equals("name")) {
            return new X500Principal(first).getName();
        }
        String name = new String(HexFormat.of().parseHex(words[2]), UTF_8);
        return SslPrincipalMapper.fromRules(new String(first, UTF_8)).getName(name);
    }
}
