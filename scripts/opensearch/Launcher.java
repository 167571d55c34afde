import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

import org.opensearch.common.logging.LogConfigurator;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;

/**
 * Starts one OpenSearch node from a home folder (lib, modules, plugins, config), without the
 * command-line bootstrap: so no refusal of root, no security manager, no bootstrap checks.
 * Modules and plugins are loaded from their folders by the node's own plugin service, each in
 * its own class loader, as in a distribution.
 *
 * Arguments: HOME CONF DATA LOGS, then any key=value settings, which win over opensearch.yml.
 */
public final class Launcher {

    private static final long CLOSE_SECONDS = 20;

    public static void main(String[] args) throws Exception {
        if (args.length < 4) {
            System.err.println("usage: Launcher HOME CONF DATA LOGS [key=value ...]");
            System.exit(2);
        }
        Path conf = Path.of(args[1]);
        Settings.Builder settings = Settings.builder()
            .put("path.home", args[0])
            .put("path.data", args[2])
            .put("path.logs", args[3]);
        for (int i = 4; i < args.length; i++) {
            int equals = args[i].indexOf('=');
            if (equals < 1) {
                System.err.println("not a key=value setting: " + args[i]);
                System.exit(2);
            }
            settings.put(args[i].substring(0, equals), args[i].substring(equals + 1));
        }
        Files.createDirectories(Path.of(args[2]));
        Files.createDirectories(Path.of(args[3]));

        // As the usual bootstrap does: a node whose thread died of an Error would leave its clients
        // without an answer.
        Thread.setDefaultUncaughtExceptionHandler((thread, failure) -> {
            System.err.println("uncaught in " + thread.getName());
            failure.printStackTrace();
            if (failure instanceof LinkageError && String.valueOf(root(failure)).contains("opensearchknn")) {
                System.err.println("No native k-NN library here: the mapping must name the engine lucene.");
            }
            if (failure instanceof Error) {
                System.err.println("the node ends");
                Runtime.getRuntime().halt(1);
            }
        });

        LogConfigurator.registerErrorListener();
        Environment environment = InternalSettingsPreparer.prepareEnvironment(
            settings.build(), Map.of(), conf, () -> "local");
        LogConfigurator.setNodeName(Node.NODE_NAME_SETTING.get(environment.settings()));
        LogConfigurator.configure(environment);

        Node node = new Node(environment);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> close(node), "close"));
        try {
            node.start();
        } catch (Throwable failure) {
            failure.printStackTrace();
            System.exit(1);
        }
        // All of the node's threads are daemons: only this one keeps the process, until a signal.
        new CountDownLatch(1).await();
    }

    private static Throwable root(Throwable failure) {
        Throwable root = failure;
        while (root.getCause() != null) {
            root = root.getCause();
        }
        return root;
    }

    private static void close(Node node) {
        try {
            node.close();
            if (!node.awaitClose(CLOSE_SECONDS, TimeUnit.SECONDS)) {
                System.err.println("the node did not close within " + CLOSE_SECONDS + " s");
            }
        } catch (Exception failure) {
            failure.printStackTrace();
        }
    }
}
