import java.util.Scanner;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Does with Redisson's lock what the lines on its standard input say: "try key", "lock key" or "unlock key". */
public class Peer {
    public static void main(String[] args) {
        Config config = new Config();
        config.useSingleServer().setAddress("redis://" + args[0]).setConnectionMinimumIdleSize(1).setConnectionPoolSize(4);
        RedissonClient client = Redisson.create(config);
        System.out.println("peer: ready");
        Scanner in = new Scanner(System.in);
        while (in.hasNextLine()) {
            String[] words = in.nextLine().split(" ", 2);
            RLock lock = client.getLock(words[1]);
            switch (words[0]) {
                case "try" -> System.out.println("peer: " + lock.tryLock());
                case "lock" -> {
                    lock.lock();
                    System.out.println("peer: locked");
                }
                default -> {
                    lock.unlock();
                    System.out.println("peer: unlocked");
                }
            }
        }
        client.shutdown();
    }
}
