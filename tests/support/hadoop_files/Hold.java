package org.apache.hadoop.fs.local;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Paths;

/**
 * Holds a thread before it renames a file to one of the paths that a test has listed, for good: the test kills the
 * process then. Spark gives an entry of a log its name by a rename, so that a batch is held at a named point.
 */
final class Hold {
  private static final String FOLDER = System.getenv("SLACKWATER_TEST_HOLD");

  static void before(File target) throws IOException {
    if (FOLDER == null) {
      return;
    }
    String[] points = new String(Files.readAllBytes(Paths.get(FOLDER, "points")), "UTF-8").split("\n");
    for (int number = 0; number < points.length; number++) {
      if (target.getPath().equals(points[number])) {
        new File(FOLDER, "held-" + number).createNewFile();
        sleep();
      }
    }
  }

  private static void sleep() throws IOException {
    try {
      while (true) {
        Thread.sleep(1000L);
      }
    } catch (InterruptedException stopped) {
      throw new IOException(stopped);
    }
  }

  private Hold() {}
}
