#!/bin/sh
# The entry point of the image kafscale-spark. In a pod that Spark has created, it runs Spark's driver or an
# executor, according to Spark's environment variables; otherwise a command of Kafscale.
set -eu

case ${1:-} in
driver)
  shift
  exec "$SPARK_HOME/bin/spark-submit" --deploy-mode client \
    --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" \
    --conf "spark.executorEnv.SPARK_DRIVER_POD_IP=$SPARK_DRIVER_BIND_ADDRESS" \
    "$@"
  ;;
executor)
  # Spark passes each option of Java in a variable of its own.
  set --
  count=0
  while option=$(printenv "SPARK_JAVA_OPT_$count")
  do
    set -- "$@" "$option"
    count=$((count + 1))
  done
  exec "$JAVA_HOME/bin/java" "$@" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
    -cp "${SPARK_CLASSPATH:+$SPARK_CLASSPATH:}$SPARK_CONF_DIR:$SPARK_HOME/jars/*" \
    org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
    --driver-url "$SPARK_DRIVER_URL" \
    --executor-id "$SPARK_EXECUTOR_ID" \
    --cores "$SPARK_EXECUTOR_CORES" \
    --app-id "$SPARK_APPLICATION_ID" \
    --hostname "$SPARK_EXECUTOR_POD_IP" \
    --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
    --podName "$SPARK_EXECUTOR_POD_NAME"
  ;;
*)
  exec kafscale "$@"
  ;;
esac
